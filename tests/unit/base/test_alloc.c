/* The allocator's fault hook and its count of live blocks. */
#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_chosen_allocation_fails_and_no_other(void **state)
{
    (void)state;
    sw_alloc_fail_at(2);
    void *first = sw_alloc(8);
    void *second = sw_alloc(8);
    void *third = sw_alloc_zero(1, 8);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    sw_free(first);
    sw_free(third);
}

static void a_failed_growth_keeps_the_old_block(void **state)
{
    (void)state;
    char *block = sw_alloc(4);
    assert_non_null(block);
    block[3] = 'x';
    sw_alloc_fail_at(1);
    assert_null(sw_realloc(block, 4096));
    assert_int_equal(block[3], 'x');
    sw_free(block);
}

static void live_blocks_are_counted(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    void *a = sw_alloc(1);
    void *b = sw_realloc(NULL, 10);
    void *c = sw_realloc(b, 100);
    assert_int_equal(sw_alloc_live() - before, 2);
    sw_free(a);
    sw_free(c);
    sw_free(NULL);
    assert_int_equal(sw_alloc_live(), before);
}

static void every_time_that_memory_is_asked_for_is_counted(void **state)
{
    (void)state;
    uint64_t before = sw_alloc_count();
    void *a = sw_alloc(1);
    a = sw_realloc(a, 100);
    sw_free(a);
    sw_free(sw_alloc_zero(2, 3));
    assert_int_equal(sw_alloc_count() - before, 3);
}

static void an_overflowing_product_and_a_zero_size_are_no_surprise(void **state)
{
    (void)state;
    volatile size_t huge = SIZE_MAX / 2;
    assert_null(sw_alloc_zero(huge, 4));
    void *a = sw_alloc(0);
    void *b = sw_alloc_zero(0, 7);
    void *c = sw_realloc(a, 0);
    assert_non_null(b);
    assert_non_null(c);
    sw_free(b);
    sw_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chosen_allocation_fails_and_no_other),
        cmocka_unit_test(a_failed_growth_keeps_the_old_block),
        cmocka_unit_test(live_blocks_are_counted),
        cmocka_unit_test(every_time_that_memory_is_asked_for_is_counted),
        cmocka_unit_test(an_overflowing_product_and_a_zero_size_are_no_surprise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
