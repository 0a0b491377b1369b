/*
 * The rule for arguments of shardwright/shardwright.h, held against every function that an umbrella header
 * brings: each is called with each of its pointers NULL in turn. A function or a pointer without a case
 * fails. A test writes a case for each function and a table of them, and runs NULL_TESTS(&table, ...).
 */
#ifndef SW_TEST_NULL_CASE_H
#define SW_TEST_NULL_CASE_H

#include <stdbool.h>
#include <string.h>

#include "declarations.h"
#include "shardwright/shardwright.h"

/* One call of one function. */
typedef struct null_trial {
    const char *null; /* name of the argument that is NULL; "": none; NULL: all are */
    bool is_met;      /* the case has an argument of that name */
    sw_error err;
} null_trial;

/* What came of it: is_nothing says that every output, or the answer, is NULL, zero or what stands for it. */
typedef struct null_outcome {
    sw_status status;
    bool is_nothing;
} null_outcome;

/* Is it the turn of the argument of that name? */
bool null_turn(null_trial *t, const char *name);

/* An argument, or NULL when it is its turn; and an output that was cleared, where there was one. */
#define ARG(name, value)       (null_turn(t, #name) ? NULL : (value))
#define CLEAR(name, condition) (null_turn(t, #name) || (condition))

/* What an output points to before the call: must be gone after it. */
extern void *const null_poison;

/*
 * Most cases have one of three forms: a function that hands out something new, one that frees, and one that
 * answers. The others are written out.
 */
#define MAKES_CASE(name, type, free_it, call)                                                                \
    static null_outcome name(null_trial *t)                                                                  \
    {                                                                                                        \
        type *out = null_poison;                                                                             \
        sw_status status = call;                                                                             \
        null_outcome o = {status, CLEAR(out, out == NULL)};                                                  \
        if (status == SW_OK)                                                                                 \
            free_it(out);                                                                                    \
        return o;                                                                                            \
    }

#define FREES_CASE(name, argument)                                                                           \
    static null_outcome name(null_trial *t)                                                                  \
    {                                                                                                        \
        (void)null_turn(t, #argument);                                                                       \
        sw_##name(NULL);                                                                                     \
        return (null_outcome){SW_OK, false};                                                                 \
    }

#define ANSWERS_CASE(name, is_nothing)                                                                       \
    static null_outcome name(null_trial *t)                                                                  \
    {                                                                                                        \
        return (null_outcome){SW_OK, (is_nothing)};                                                          \
    }

typedef enum null_kind {
    FAILS,   /* returns a status */
    ANSWERS, /* has an answer for nothing */
    ACTS     /* takes NULL and does nothing then */
} null_kind;

typedef struct null_row {
    const char *function;
    null_kind kind;
    null_outcome (*call)(null_trial *t);
    const char *optional; /* names of the pointers that may be NULL; err always may */
} null_row;

typedef struct null_table {
    const char *umbrella; /* shardwright for shardwright.h */
    const null_row *rows;
    size_t n;
} null_table;

/* The tests, each with the table: what NULL_TESTS() lists. */
void every_function_that_takes_a_pointer_has_a_case_for_it(void **state);
void every_exported_function_was_found_in_the_headers(void **state);
void every_call_works_when_nothing_is_null(void **state);
void a_null_that_is_needed_is_refused_by_its_name_or_answered_by_nothing(void **state);
void a_null_that_may_be_is_taken(void **state);
void all_pointers_may_be_null_at_once(void **state);

#define NULL_TEST(name, table, setup, teardown)                                                              \
    cmocka_unit_test_prestate_setup_teardown(name, setup, teardown, (void *)(table))
#define NULL_TESTS(table, setup, teardown)                                                                   \
    NULL_TEST(every_function_that_takes_a_pointer_has_a_case_for_it, table, setup, teardown),                \
        NULL_TEST(every_exported_function_was_found_in_the_headers, table, setup, teardown),                 \
        NULL_TEST(every_call_works_when_nothing_is_null, table, setup, teardown),                            \
        NULL_TEST(a_null_that_is_needed_is_refused_by_its_name_or_answered_by_nothing, table, setup,         \
                  teardown),                                                                                 \
        NULL_TEST(a_null_that_may_be_is_taken, table, setup, teardown),                                      \
        NULL_TEST(all_pointers_may_be_null_at_once, table, setup, teardown)

#endif
