/*
 * Text for people: lines and tables in a buffer, numbers as they are read. Names come from files: every line
 * is one line whatever bytes they have, and no control byte passes.
 */
#ifndef SW_PLAN_EXPLAIN_TEXT_H
#define SW_PLAN_EXPLAIN_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"

enum { SW_TEXT_LINE_WIDTH = 110, SW_TEXT_NUMBER = 32 };

/* One line, its end included. */
void sw_text_line(sw_buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "1,235,814,400" into room for SW_TEXT_NUMBER bytes; returns `text`. */
const char *sw_text_count(char *text, uint64_t value);

/* The same of a number that was computed, rounded; what 64 bits do not hold is their largest number. */
const char *sw_text_amount(char *text, double value);

/* "590.5 MiB", "512 B". */
const char *sw_text_bytes(char *text, double bytes);

/* Append `text` broken into lines of SW_TEXT_LINE_WIDTH at blanks, each after `indent` blanks. */
void sw_text_wrap(sw_buffer *out, int indent, const char *text);

/* The same of a text that was put together, which is cleared. */
void sw_text_wrap_buffer(sw_buffer *out, int indent, sw_buffer *text);

/* Runs of numbers as they come, "0..2,5": begin with a zeroed record, end with sw_text_runs_end(). */
typedef struct sw_text_runs {
    uint64_t first;
    uint64_t last;
    uint32_t n;
} sw_text_runs;

void sw_text_runs_add(sw_text_runs *runs, uint64_t number, sw_buffer *out);
void sw_text_runs_end(const sw_text_runs *runs, sw_buffer *out);

/* ---- tables ---- */

enum { SW_TEXT_COLUMNS = 8 };

/* A table whose cells are given row by row; the first row is the title. Zeroed but for arena and n_columns.
 */
typedef struct sw_text_table {
    sw_arena *arena;
    uint32_t n_columns;
    uint32_t right; /* bit per column: numbers */
    uint32_t n_cells;
    uint32_t capacity;
    const char **cells;
    const char **below; /* per row: lines that stand under it, each ended; NULL: none */
    uint32_t rows_capacity;
    bool failed; /* no memory: what was given since is lost */
} sw_text_table;

void sw_text_cell(sw_text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A row of the table at once: `n_columns` cells. */
void sw_text_row(sw_text_table *table, const char *const *cells);

/* Lines under the row of the last cell; the buffer's bytes are copied. */
void sw_text_below(sw_text_table *table, sw_buffer *lines);

/* Width of the table's longest line. */
size_t sw_text_table_width(const sw_text_table *table, int indent);

/* Print the first `n_columns` columns after `indent` blanks. The buffer fails when the table has. */
void sw_text_table_put(const sw_text_table *table, int indent, uint32_t n_columns, sw_buffer *out);

#endif
