/* Reading reference pages: see the header. */
#include "page.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *page_file(const char *path)
{
    enum { MOST = 4 << 20 };
    FILE *file = fopen(path, "r");
    char *text = malloc(MOST + 1);

    if (file == NULL || text == NULL) {
        fail_msg("%s cannot be read", path);
        return NULL;
    }
    size_t n = fread(text, 1, MOST, file);
    (void)fclose(file);
    assert_true(n < MOST);
    text[n] = '\0';
    return text;
}

/* Cut "| a | `b` |" into cells, in place. */
static void split(char *line, const char **cells)
{
    size_t n = 0;

    for (char *at = line + 1; *at != '\0' && n < PAGE_CELLS; n++) {
        char *end = at + strcspn(at, "|");
        char *next = *end == '\0' ? end : end + 1;
        char *to = at;
        for (const char *from = at; from < end; from++) {
            bool is_dropped = *from == '`' || (*from == ' ' && to == at);
            if (!is_dropped)
                *to++ = *from;
        }
        while (to > at && to[-1] == ' ')
            to--;
        cells[n] = at;
        at = next;
        *to = '\0';
    }
    while (n < PAGE_CELLS)
        cells[n++] = "";
}

void page_open_in(page_table *out, const char *root, const char *page, const char *heading)
{
    char path[512];
    bool is_inside = heading == NULL;
    size_t n_lines = 0; /* of the table at hand: its head, the rule below it, then rows */

    (void)snprintf(path, sizeof path, "%s/docs/reference/%s", root, page);
    *out = (page_table){.text = page_file(path)};
    for (char *line = out->text, *next = NULL; line != NULL; line = next) {
        char *end = strchr(line, '\n');
        next = end == NULL ? NULL : end + 1;
        if (end != NULL)
            *end = '\0';
        if (line[0] == '#' && heading != NULL)
            is_inside = strcmp(line + strspn(line, "# "), heading) == 0;
        n_lines = line[0] == '|' ? n_lines + 1 : 0;
        if (!is_inside || n_lines < 3)
            continue;
        assert_true(out->n_rows < PAGE_ROWS);
        split(line, out->cells[out->n_rows++]);
    }
    if (out->n_rows == 0)
        fail_msg("%s has no table under \"%s\"", page, heading == NULL ? "" : heading);
}

void page_close(page_table *table)
{
    free(table->text);
}

void page_check_row(const page_table *table, size_t row, const char *const *cells)
{
    if (row >= table->n_rows)
        fail_msg("the page has %zu rows, row %zu should begin with '%s'", table->n_rows, row + 1, cells[0]);
    for (size_t i = 0; cells[i] != NULL; i++) {
        if (strcmp(table->cells[row][i], cells[i]) != 0)
            fail_msg("row %zu, column %zu: the page says '%s', the code '%s'", row + 1, i + 1,
                     table->cells[row][i], cells[i]);
    }
}
