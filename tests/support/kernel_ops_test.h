/* The three tests of a file whose kernels are the rows of one table `ops`; included after the table. */
#ifndef SW_TEST_KERNEL_OPS_TEST_H
#define SW_TEST_KERNEL_OPS_TEST_H

#include "base/status.h"

static const kernel_op *op_under_test;

static bool equals_reference(gen *g)
{
    return op_equals_reference(op_under_test, g);
}

static bool ignores_threads(gen *g)
{
    return op_ignores_threads(op_under_test, g);
}

static bool gradient_is_right(gen *g)
{
    return op_gradient_is_right(op_under_test, g);
}

static void each_variant_gives_what_the_reference_gives(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(ops); i++) {
        op_under_test = &ops[i];
        assert_true(gen_holds(equals_reference, 60));
    }
}

static void the_bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(ops); i++) {
        op_under_test = &ops[i];
        assert_true(gen_holds(ignores_threads, 25));
    }
}

static void each_backward_is_the_slope_of_its_forward(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(ops); i++) {
        op_under_test = &ops[i];
        assert_true(gen_holds(gradient_is_right, 40));
    }
}

#endif
