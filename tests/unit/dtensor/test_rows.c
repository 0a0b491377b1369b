/* Sets of rows: picked, met, found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "dtensor/rows.h"

static sw_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = sw_arena_create(0);
    return arena == NULL ? -1 : 0;
}

static int close_arena(void **state)
{
    (void)state;
    sw_arena_destroy(arena);
    return 0;
}

#define ROWS(...)                                                                                            \
    make_rows((const sw_range[]){__VA_ARGS__}, sizeof((const sw_range[]){__VA_ARGS__}) / sizeof(sw_range))

static sw_rows make_rows(const sw_range *ranges, size_t n)
{
    sw_rows rows = {0, (uint32_t)n, ranges};
    for (size_t i = 0; i < n; i++)
        rows.count += ranges[i].end - ranges[i].begin;
    return rows;
}

static void assert_rows(const sw_rows *found, sw_rows expected)
{
    assert_true(sw_rows_equal(found, &expected));
    assert_int_equal(found->count, expected.count);
}

static void the_whole_of_nothing_has_no_range(void **state)
{
    (void)state;
    sw_rows rows;
    assert_int_equal(sw_rows_whole(&rows, 0, arena, NULL), SW_OK);
    assert_int_equal(rows.n, 0);
    assert_int_equal(rows.count, 0);
    assert_int_equal(sw_rows_whole(&rows, 7, arena, NULL), SW_OK);
    assert_rows(&rows, ROWS({0, 7}));
}

static void places_are_counted_in_the_set(void **state)
{
    (void)state;
    sw_rows of = ROWS({10, 13}, {20, 22}, {30, 40});
    sw_rows places = ROWS({1, 4}, {6, 9});
    sw_rows rows;
    assert_int_equal(sw_rows_pick(&rows, &of, &places, arena, NULL), SW_OK);
    assert_rows(&rows, ROWS({11, 13}, {20, 21}, {31, 34}));
    sw_rows again;
    assert_int_equal(sw_rows_places(&again, &rows, &of, arena, NULL), SW_OK);
    assert_rows(&again, places);
}

static void ranges_that_touch_become_one(void **state)
{
    (void)state;
    sw_rows of = ROWS({10, 13}, {20, 22});
    sw_rows rows = ROWS({12, 13}, {20, 22});
    sw_rows found;
    assert_int_equal(sw_rows_places(&found, &rows, &of, arena, NULL), SW_OK);
    assert_rows(&found, ROWS({2, 5}));
}

static void two_sets_meet_in_the_rows_of_both(void **state)
{
    (void)state;
    sw_rows a = ROWS({0, 5}, {8, 9}, {12, 20});
    sw_rows b = ROWS({4, 8}, {13, 14}, {15, 30});
    sw_rows found;
    assert_int_equal(sw_rows_meet(&found, &a, &b, arena, NULL), SW_OK);
    assert_rows(&found, ROWS({4, 5}, {13, 14}, {15, 20}));
    assert_false(sw_rows_equal(&found, &a));
}

static void a_set_without_memory_says_so(void **state)
{
    (void)state;
    sw_arena *small = sw_arena_create(1);
    sw_error err = {0};
    sw_rows rows;
    assert_int_equal(sw_rows_whole(&rows, 7, small, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "the rows of a layout: more than the 1 bytes of memory allowed for it");
    sw_arena_destroy(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_of_nothing_has_no_range),
        cmocka_unit_test(places_are_counted_in_the_set),
        cmocka_unit_test(ranges_that_touch_become_one),
        cmocka_unit_test(two_sets_meet_in_the_rows_of_both),
        cmocka_unit_test(a_set_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
