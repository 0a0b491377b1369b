/* Lines, numbers and tables of an explanation. A failed allocation sticks to the table or the buffer. */
#include "plan/explain_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/intern.h"

/* Append formatted text without control bytes. */
static void put_clean(sw_buffer *out, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *room = length < 0 ? NULL : sw_buffer_room(out, (size_t)length + 1);
    if (room == NULL)
        return;
    (void)vsnprintf(room, (size_t)length + 1, format, args);
    sw_text_clean(room, (size_t)length);
    out->length += (size_t)length;
}

void sw_text_line(sw_buffer *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_clean(out, format, args);
    va_end(args);
    sw_buffer_putc(out, '\n');
}

const char *sw_text_count(char *text, uint64_t value)
{
    char digits[SW_TEXT_NUMBER];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *sw_text_amount(char *text, double value)
{
    const double two_to_the_64 = 18446744073709551616.0;
    return sw_text_count(text, value + 0.5 < two_to_the_64 ? (uint64_t)(value + 0.5) : UINT64_MAX);
}

const char *sw_text_bytes(char *text, double bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;

    if (bytes < 1024) {
        (void)snprintf(text, SW_TEXT_NUMBER, "%.0f B", bytes);
        return text;
    }
    for (bytes /= 1024; bytes >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    (void)snprintf(text, SW_TEXT_NUMBER, "%.1f %s", bytes, units[unit]);
    return text;
}

void sw_text_wrap(sw_buffer *out, int indent, const char *text)
{
    size_t room = SW_TEXT_LINE_WIDTH - (size_t)indent;

    while (*text != '\0') {
        size_t length = strlen(text);
        size_t take = length;
        if (length > room) {
            take = room;
            while (take > 0 && text[take] != ' ')
                take--;
            if (take == 0) /* a word longer than a line */
                take = strcspn(text, " ");
        }
        sw_text_line(out, "%*s%.*s", indent, "", (int)take, text);
        text += take;
        text += strspn(text, " ");
    }
}

void sw_text_wrap_buffer(sw_buffer *out, int indent, sw_buffer *text)
{
    const char *line = sw_buffer_text(text);

    if (line == NULL)
        out->failed = true;
    else
        sw_text_wrap(out, indent, line);
    sw_buffer_clear(text);
}

static void put_run(const sw_text_runs *runs, sw_buffer *out)
{
    if (runs->first == runs->last)
        sw_buffer_u64(out, runs->first);
    else
        sw_buffer_printf(out, "%" PRIu64 "..%" PRIu64, runs->first, runs->last);
}

void sw_text_runs_add(sw_text_runs *runs, uint64_t number, sw_buffer *out)
{
    if (runs->n++ > 0 && number == runs->last + 1) {
        runs->last = number;
        return;
    }
    if (runs->n > 1) {
        put_run(runs, out);
        sw_buffer_putc(out, ',');
    }
    runs->first = number;
    runs->last = number;
}

void sw_text_runs_end(const sw_text_runs *runs, sw_buffer *out)
{
    if (runs->n > 0)
        put_run(runs, out);
}

/* ---- tables ---- */

void sw_text_cell(sw_text_table *table, const char *format, ...)
{
    sw_buffer text = {0};
    va_list args;

    va_start(args, format);
    put_clean(&text, format, args);
    va_end(args);
    char *copy = sw_arena_copy(table->arena, text.length == 0 ? "" : text.bytes, text.length);
    if (text.failed || copy == NULL ||
        !sw_plan_grow(table->arena, (void **)&table->cells, &table->capacity, table->n_cells,
                      sizeof *table->cells))
        table->failed = true;
    else
        table->cells[table->n_cells++] = copy;
    sw_buffer_clear(&text);
}

void sw_text_row(sw_text_table *table, const char *const *cells)
{
    for (uint32_t i = 0; i < table->n_columns; i++)
        sw_text_cell(table, "%s", cells[i]);
}

void sw_text_below(sw_text_table *table, sw_buffer *lines)
{
    uint32_t row = table->n_cells == 0 ? 0 : (table->n_cells - 1) / table->n_columns;

    if (lines->length == 0 && !lines->failed)
        return;
    while (!table->failed && row >= table->rows_capacity) /* what grows is zeroed */
        table->failed = !sw_plan_grow(table->arena, (void **)&table->below, &table->rows_capacity,
                                      table->rows_capacity, sizeof *table->below);
    char *copy =
        table->failed || lines->failed ? NULL : sw_arena_copy(table->arena, lines->bytes, lines->length);
    if (copy == NULL)
        table->failed = true;
    else
        table->below[row] = copy;
}

/* Bytes that are not the tail of a character: what a terminal advances by, but for wide characters. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void put_padding(sw_buffer *out, size_t n)
{
    for (; n > 0; n--)
        sw_buffer_putc(out, ' ');
}

/* Columns [0, n) of a row; padding stands only before something. */
static void put_row(const sw_text_table *table, const char **cells, uint32_t n, const size_t *widths,
                    int indent, sw_buffer *out)
{
    size_t owed = (size_t)indent;

    for (uint32_t i = 0; i < n; i++) {
        size_t width = width_of(cells[i]);
        size_t pad = widths[i] - width;
        bool is_right = (table->right & (1U << i)) != 0;
        if (is_right)
            owed += pad;
        if (width > 0) {
            put_padding(out, owed);
            sw_buffer_puts(out, cells[i]);
            owed = 0;
        }
        owed += (is_right ? 0 : pad) + 2;
    }
    sw_buffer_putc(out, '\n');
}

static void measure(const sw_text_table *table, size_t widths[SW_TEXT_COLUMNS])
{
    for (uint32_t i = 0; i < table->n_cells; i++) {
        size_t width = width_of(table->cells[i]);
        uint32_t column = i % table->n_columns;
        widths[column] = width > widths[column] ? width : widths[column];
    }
}

size_t sw_text_table_width(const sw_text_table *table, int indent)
{
    size_t widths[SW_TEXT_COLUMNS] = {0};
    size_t total = (size_t)indent;

    measure(table, widths);
    for (uint32_t i = 0; i < table->n_columns; i++)
        total += widths[i] + (i > 0 ? 2 : 0);
    return total;
}

void sw_text_table_put(const sw_text_table *table, int indent, uint32_t n_columns, sw_buffer *out)
{
    size_t widths[SW_TEXT_COLUMNS] = {0};
    uint32_t n_rows = table->n_cells / table->n_columns;

    if (table->failed) {
        out->failed = true;
        return;
    }
    measure(table, widths);
    for (uint32_t row = 0; row < n_rows; row++) {
        put_row(table, table->cells + (size_t)row * table->n_columns, n_columns, widths, indent, out);
        if (row < table->rows_capacity && table->below[row] != NULL)
            sw_buffer_puts(out, table->below[row]);
    }
}
