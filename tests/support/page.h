/*
 * Reference pages as data: the rows of the Markdown table under a heading, cell by cell, so that a test
 * compares them with the table in the code. Backquotes and the blanks round a cell are dropped.
 */
#ifndef SW_TEST_PAGE_H
#define SW_TEST_PAGE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

enum { PAGE_CELLS = 8, PAGE_ROWS = 200 };

typedef struct page_table {
    char *text;                               /* holds the cells */
    const char *cells[PAGE_ROWS][PAGE_CELLS]; /* "" behind the last */
    size_t n_rows;                            /* the table's head is none */
} page_table;

/* A whole file, to be given to free(); the test fails when it cannot be read. */
char *page_file(const char *path);

/* The table under a heading ("Default rules") of docs/reference/PAGE; NULL: all tables of the page in order.
 */
void page_open_in(page_table *out, const char *root, const char *page, const char *heading);
#define page_open(out, page, heading) page_open_in((out), SW_SOURCE_DIR, (page), (heading))
void page_close(page_table *table);

/* The table has this row here; the test fails with both otherwise. `cells` ends with NULL. */
void page_check_row(const page_table *table, size_t row, const char *const *cells);

#endif
