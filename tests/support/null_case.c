/* The rule for arguments, held against a table of calls: see the header. */
#include "null_case.h"

#include <stdio.h>

static uint64_t before[16];
void *const null_poison = before;

bool null_turn(null_trial *t, const char *name)
{
    bool is_it = t->null == NULL || strcmp(t->null, name) == 0;

    t->is_met = t->is_met || is_it;
    return is_it;
}

static const null_row *row_of(const null_table *table, const char *function)
{
    for (size_t i = 0; i < table->n; i++) {
        if (strcmp(table->rows[i].function, function) == 0)
            return &table->rows[i];
    }
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    }
    return false;
}

static bool is_optional(const null_row *r, const char *pointer)
{
    return strcmp(pointer, "err") == 0 || has_word(r->optional, pointer);
}

/* Call each function with each pointer in turn that may, or may not, be NULL. */
static void for_each(const null_table *table, bool optional,
                     void (*check)(const null_row *r, const char *pointer))
{
    declarations all;

    declarations_read(&all, table->umbrella);
    for (size_t i = 0; i < table->n; i++) {
        const declaration *d = declaration_find(&all, table->rows[i].function);
        for (size_t k = 0; d != NULL && k < d->n_pointers; k++) {
            if (is_optional(&table->rows[i], d->pointers[k]) == optional)
                check(&table->rows[i], d->pointers[k]);
        }
    }
}

/* ---- the tests ---- */

void every_function_that_takes_a_pointer_has_a_case_for_it(void **state)
{
    const null_table *table = *state;
    declarations all;
    size_t n = 0;

    declarations_read(&all, table->umbrella);
    for (size_t i = 0; i < all.n; i++) {
        const null_row *r = row_of(table, all.of[i].name);
        if (all.of[i].n_pointers == 0)
            continue;
        if (r == NULL) {
            fail_msg("%s() takes pointers and has no case here", all.of[i].name);
            return;
        }
        for (size_t k = 0; k < all.of[i].n_pointers; k++) {
            null_trial t = {.null = all.of[i].pointers[k]};
            (void)r->call(&t);
            if (!t.is_met)
                fail_msg("%s(): the case has no argument %s", r->function, t.null);
        }
        n++;
    }
    assert_int_equal(n, table->n);
}

void every_exported_function_was_found_in_the_headers(void **state)
{
    const null_table *table = *state;
    declarations all;
    size_t n = 0;
    char name[128];

    (void)snprintf(name, sizeof name, "tests/headers/symbols-%s.txt", table->umbrella);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    declarations_read(&all, table->umbrella);
    for (; fscanf(file, "%127s", name) == 1; n++) {
        if (declaration_find(&all, name) == NULL)
            fail_msg("%s() is exported, and not declared", name);
    }
    (void)fclose(file);
    assert_int_equal(n, all.n);
}

void every_call_works_when_nothing_is_null(void **state)
{
    const null_table *table = *state;

    for (size_t i = 0; i < table->n; i++) {
        null_trial t = {.null = ""};
        null_outcome o = table->rows[i].call(&t);
        if (o.status != SW_OK || o.is_nothing)
            fail_msg("%s() fails: %s", table->rows[i].function, t.err.what);
    }
}

static void check_refused(const null_row *r, const char *pointer)
{
    char what[128];
    null_trial t = {.null = pointer};
    null_outcome o = r->call(&t);

    if (r->kind != ACTS && !o.is_nothing)
        fail_msg("%s(): %s is NULL, and an output or the answer stands for something", r->function, pointer);
    if (r->kind != FAILS)
        return;
    assert_int_equal(o.status, SW_E_ARGUMENT);
    assert_int_equal(t.err.status, SW_E_ARGUMENT);
    (void)snprintf(what, sizeof what, "%s(): %s is NULL", r->function, pointer);
    assert_string_equal(t.err.what, what);
    assert_string_equal(t.err.help, "give it: the header says which arguments may be NULL");
}

void a_null_that_is_needed_is_refused_by_its_name_or_answered_by_nothing(void **state)
{
    for_each(*state, false, check_refused);
}

static void check_taken(const null_row *r, const char *pointer)
{
    null_trial t = {.null = pointer};
    null_outcome o = r->call(&t);

    if (o.status != SW_OK || o.is_nothing)
        fail_msg("%s(): %s may be NULL: %s", r->function, pointer, t.err.what);
}

void a_null_that_may_be_is_taken(void **state)
{
    for_each(*state, true, check_taken);
}

void all_pointers_may_be_null_at_once(void **state)
{
    const null_table *table = *state;

    for (size_t i = 0; i < table->n; i++) {
        null_trial t = {.null = NULL};
        null_outcome o = table->rows[i].call(&t);
        assert_int_equal(o.status, table->rows[i].kind == FAILS ? SW_E_ARGUMENT : SW_OK);
        assert_true(o.is_nothing || table->rows[i].kind == ACTS);
    }
}
