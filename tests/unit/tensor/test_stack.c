/* Memory of a step: taken, given back, kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "gen.h"
#include "tensor/stack.h"

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    enum { N = 200 };
    unsigned char *pieces[N];
    size_t sizes[N];
    sw_stack *stack = sw_stack_create();
    gen g = {1, 1};

    (void)state;
    for (size_t i = 0; i < N; i++) {
        sizes[i] = gen_below(&g, 20000);
        pieces[i] = sw_stack_take(stack, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 64, 0);
        memset(pieces[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(pieces[i][j], i % 256);
    }
    sw_stack_destroy(stack);
}

static void what_is_given_back_is_taken_again(void **state)
{
    sw_stack *stack = sw_stack_create();

    (void)state;
    (void)sw_stack_take(stack, 100);
    sw_stack_mark mark = sw_stack_top(stack);
    const void *first = sw_stack_take(stack, 1000);
    (void)sw_stack_take(stack, 10 << 20);
    sw_stack_release(stack, mark);
    assert_ptr_equal(sw_stack_take(stack, 1000), first);
    assert_int_equal(sw_stack_peak(stack), 128 + 1024 + (10 << 20));
    sw_stack_destroy(stack);
}

/* Takes and releases as a step makes them: nested marks, sizes of any kind. */
static void use(sw_stack *stack, uint64_t seed)
{
    sw_stack_mark marks[8];
    size_t depth = 0;
    gen g = {seed, seed};

    for (int i = 0; i < 300; i++) {
        uint32_t what = gen_below(&g, 8);
        if (what == 0 && depth < 8) {
            marks[depth++] = sw_stack_top(stack);
        } else if (what == 1 && depth > 0) {
            sw_stack_release(stack, marks[--depth]);
        } else {
            size_t bytes = gen_below(&g, 1U << gen_below(&g, 20));
            unsigned char *piece = sw_stack_take(stack, bytes);
            assert_non_null(piece);
            memset(piece, 1, bytes);
        }
    }
}

static void the_same_takes_a_second_time_allocate_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        sw_stack *stack = sw_stack_create();
        use(stack, seed);
        sw_stack_reset(stack);
        sw_alloc_fail_at(1);
        use(stack, seed);
        sw_stack_reset(stack);
        use(stack, seed);
        sw_alloc_fail_at(0);
        sw_stack_destroy(stack);
    }
}

static void large_blocks_begin_at_a_huge_page(void **state)
{
    sw_stack *stack = sw_stack_create();

    (void)state;
    assert_int_equal((uintptr_t)sw_stack_take(stack, 5 << 20) % (2 << 20), 0);
    sw_stack_destroy(stack);
}

static void without_memory_a_take_fails_and_the_stack_goes_on(void **state)
{
    sw_stack *stack = sw_stack_create();

    (void)state;
    (void)sw_stack_take(stack, 64);
    sw_alloc_fail_at(1);
    assert_null(sw_stack_take(stack, 1 << 20));
    assert_null(sw_stack_take(stack, SIZE_MAX - 3));
    assert_non_null(sw_stack_take(stack, 1 << 20));
    sw_alloc_fail_at(1);
    sw_stack_reset(stack); /* cannot put blocks together */
    sw_alloc_fail_at(0);
    assert_non_null(sw_stack_take(stack, 1 << 20));
    sw_stack_destroy(stack);
    assert_int_equal(sw_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(what_is_given_back_is_taken_again),
        cmocka_unit_test(the_same_takes_a_second_time_allocate_nothing),
        cmocka_unit_test(large_blocks_begin_at_a_huge_page),
        cmocka_unit_test(without_memory_a_take_fails_and_the_stack_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
