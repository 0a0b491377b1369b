/*
 * docs/reference/bug-cases.md and seed-map.md against the tree: every file, name and test function that a row
 * names exists, every case of the collection and every function of the seed documents has a row.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "shared.h"

/* A whole word, not a piece of a longer one. */
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        bool starts = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool ends = !(isalnum((unsigned char)at[n]) || at[n] == '_');
        if (starts && ends)
            return true;
    }
    return false;
}

/* "path: name, name": the file exists and holds the names, those of a test file as registered tests. */
static size_t check_group(const char *page, char *group)
{
    char path[512];
    char call[256];
    size_t n = 0;
    char *colon = strchr(group, ':');

    if (colon == NULL)
        fail_msg("%s: \"%s\" is not `file`: names", page, group);
    *colon = '\0';
    (void)snprintf(path, sizeof path, "%s/%s", SW_SOURCE_DIR, group);
    char *text = page_file(path);
    char *rest = NULL;
    for (char *name = strtok_r(colon + 1, ", ", &rest); name != NULL;
         name = strtok_r(NULL, ", ", &rest), n++) {
        bool is_test = strncmp(group, "tests/", 6) == 0;
        (void)snprintf(call, sizeof call, is_test ? "(%s)" : "%s", name);
        if (is_test ? strstr(text, call) == NULL || !has_word(text, name) : !has_word(text, call))
            fail_msg("%s: %s has no %s", page, group, name);
    }
    free(text);
    if (n == 0)
        fail_msg("%s: %s without a name", page, group);
    return n;
}

/* "path: name, name; path: name", or "-". Returns how many names. */
static size_t check_references(const char *page, const char *cell)
{
    char copy[4096];
    size_t n = 0;
    char *rest = NULL;

    if (strcmp(cell, "-") == 0)
        return 0;
    if (strlen(cell) >= sizeof copy)
        fail_msg("%s: a cell is too long", page);
    (void)snprintf(copy, sizeof copy, "%s", cell);
    for (char *group = strtok_r(copy, ";", &rest); group != NULL; group = strtok_r(NULL, ";", &rest))
        n += check_group(page, group + strspn(group, " "));
    return n;
}

/* A shared document; skips the running test when it is not there. */
static char *shared_document(const char *name)
{
    char path[512];

    need_shared(name);
    shared_path(path, sizeof path, name);
    return page_file(path);
}

/* ---- bug-cases.md ---- */

static void every_test_of_a_case_exists(void **state)
{
    page_table table;
    (void)state;
    page_open(&table, "bug-cases.md", NULL);
    for (size_t i = 0; i < table.n_rows; i++) {
        size_t n = check_references("bug-cases.md", table.cells[i][2]);
        if (n == 0 && strcmp(table.cells[i][3], "-") == 0)
            fail_msg("case %s is neither covered nor later", table.cells[i][0]);
    }
    page_close(&table);
}

static void cases_stand_once_and_ascend(void **state)
{
    page_table table;
    long last = 0;
    (void)state;
    page_open(&table, "bug-cases.md", NULL);
    for (size_t i = 0; i < table.n_rows; i++) {
        long number = strtol(table.cells[i][0], NULL, 10);
        if (number <= last)
            fail_msg("case %s stands behind case %ld", table.cells[i][0], last);
        last = number;
    }
    page_close(&table);
}

static void every_case_of_the_collection_has_a_row(void **state)
{
    page_table table;
    char *text = shared_document("bugs/cases.md");
    size_t n = 0;
    (void)state;
    page_open(&table, "bug-cases.md", NULL);
    for (const char *at = strstr(text, "\n### "); at != NULL; at = strstr(at + 1, "\n### "), n++) {
        long number = strtol(at + strlen("\n### "), NULL, 10);
        bool is_there = false;
        for (size_t i = 0; i < table.n_rows; i++)
            is_there = is_there || strtol(table.cells[i][0], NULL, 10) == number;
        if (!is_there)
            fail_msg("case %ld has no row", number);
    }
    assert_int_equal(n, table.n_rows);
    page_close(&table);
    free(text);
}

/* ---- seed-map.md ---- */

static void every_place_and_test_of_the_seed_map_exists(void **state)
{
    page_table table;
    (void)state;
    page_open(&table, "seed-map.md", NULL);
    for (size_t i = 0; i < table.n_rows; i++) {
        if (check_references("seed-map.md", table.cells[i][2]) == 0 ||
            check_references("seed-map.md", table.cells[i][3]) == 0)
            fail_msg("%s (%s) has no place or no test", table.cells[i][1], table.cells[i][0]);
    }
    page_close(&table);
}

/* Names behind "def " and "class " of a document stand in its table. */
static void check_definitions(const char *document, const char *keyword, const char *heading)
{
    char name[128];
    page_table table;
    char *text = shared_document(document);

    page_open(&table, "seed-map.md", heading);
    for (const char *at = strstr(text, keyword); at != NULL; at = strstr(at + 1, keyword)) {
        size_t n = 0;
        bool is_named = false;
        for (const char *c = at + strlen(keyword); isalnum((unsigned char)*c) || *c == '_'; c++)
            name[n++] = *c;
        name[n] = '\0';
        bool is_definition = strchr("(:", at[strlen(keyword) + n]) != NULL;
        for (size_t i = 0; i < table.n_rows; i++)
            is_named = is_named || has_word(table.cells[i][1], name);
        if (is_definition && !is_named)
            fail_msg("%s%s has no row", keyword, name);
    }
    page_close(&table);
    free(text);
}

static void every_function_of_the_seed_documents_has_a_row(void **state)
{
    (void)state;
    check_definitions("seeds/param_role.listing.txt", "def ", "param_role");
    check_definitions("seeds/param_role.listing.txt", "class ", "param_role");
    check_definitions("seeds/default_templates.listing.txt", "def ", "default_templates");
    check_definitions("seeds/default_templates.listing.txt", "class ", "default_templates");
    check_definitions("seeds/apply.listing.txt", "def ", "apply");
    check_definitions("seeds/module_binding.listing.txt", "def ", "module_binding");
    check_definitions("seeds/module_binding.listing.txt", "class ", "module_binding");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_test_of_a_case_exists),
        cmocka_unit_test(cases_stand_once_and_ascend),
        cmocka_unit_test(every_case_of_the_collection_has_a_row),
        cmocka_unit_test(every_place_and_test_of_the_seed_map_exists),
        cmocka_unit_test(every_function_of_the_seed_documents_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
