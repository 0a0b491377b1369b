/* Optimizers over a list: the norm of all gradients, clipping, decay, parameters without a gradient, bad
 * numbers.
 */
#include "train/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_op.h"

enum { MATRIX = 6, VECTOR = 3 };

static sw_kernel *kernel;
static sw_stack *stack;
static sw_trained params[3];
static const sw_trained_list list = {params, 3};

static sw_trained param_of(const char *fqn, uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *tensor = NULL;

    assert_int_equal(sw_tensor_create(&tensor, stack, SW_DTYPE_F64, n_dims, dims, NULL, NULL), SW_OK);
    size_t n = tensor->storage->n_elems;
    sw_tensor_lend_gradient(tensor, sw_stack_take(stack, n * sizeof(double)));
    sw_trained param = {
        fqn,
        tensor->storage,
        n_dims,
        n,
        tensor->storage->data,
        tensor->storage->gradient,
        {sw_stack_take(stack, n * sizeof(double)), sw_stack_take(stack, n * sizeof(double))}
    };
    for (int k = 0; k < SW_MOST_MOMENTS; k++)
        memset(param.moments[k], 0, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        ((double *)param.value)[i] = 1.0 + (double)i;
    return param;
}

static void give_gradient(sw_trained *param, double first)
{
    for (size_t i = 0; i < param->n_elems; i++)
        ((double *)param->gradient)[i] = first + (double)i;
    ((sw_storage *)(uintptr_t)param->storage)->has_gradient = true;
}

static int make_list(void **state)
{
    const uint64_t matrix[] = {2, 3};
    const uint64_t vector[] = {VECTOR};

    (void)state;
    stack = sw_stack_create();
    kernel = kernel_of(SW_KERNEL_REFERENCE, 1);
    params[0] = param_of("a.weight", 2, matrix);
    params[1] = param_of("a.bias", 1, vector);
    params[2] = param_of("b.weight", 2, matrix);
    give_gradient(&params[0], -1.0);
    give_gradient(&params[1], 2.0);
    return 0;
}

static int drop_list(void **state)
{
    (void)state;
    sw_kernel_destroy(kernel);
    sw_stack_destroy(stack);
    return 0;
}

static double value_of(size_t param, size_t i)
{
    return ((const double *)params[param].value)[i];
}

static void the_norm_is_that_of_all_gradients_as_one_vector(void **state)
{
    (void)state; /* -1 0 1 2 3 4, 2 3 4 */
    assert_true(fabs(sw_trained_norm(&list, kernel) - sqrt(31.0 + 29.0)) < 1e-14);
    const sw_trained_list nothing_flowed_to = {params + 2, 1};
    assert_true(sw_trained_norm(&nothing_flowed_to, kernel) == 0.0);
}

/* The first step: m / (1 - beta1) is the gradient, and so is the root of v / (1 - beta2) but for its sign. */
static double first_step(double p, double g, double decay, const sw_optimizer *a)
{
    return p * (1.0 - a->lr * decay) - a->lr * g / (fabs(g) + a->eps);
}

static void matrices_decay_and_vectors_do_not(void **state)
{
    const sw_optimizer adamw = {SW_OPTIMIZER_ADAMW, 1e-2, 0.1, 0.9, 0.95, 1e-8, 0.0};

    (void)state;
    sw_trained_step(&list, kernel, &adamw, sw_trained_norm(&list, kernel), 1);
    for (size_t i = 0; i < MATRIX; i++)
        assert_true(fabs(value_of(0, i) - first_step(1.0 + (double)i, (double)i - 1.0, 0.1, &adamw)) < 1e-13);
    for (size_t i = 0; i < VECTOR; i++)
        assert_true(fabs(value_of(1, i) - first_step(1.0 + (double)i, 2.0 + (double)i, 0.0, &adamw)) < 1e-13);
}

static void what_has_no_gradient_is_left_alone(void **state)
{
    const sw_optimizer adamw = {SW_OPTIMIZER_ADAMW, 1e-2, 0.1, 0.9, 0.95, 1e-8, 0.0};

    (void)state;
    sw_trained_step(&list, kernel, &adamw, sw_trained_norm(&list, kernel), 1);
    for (size_t i = 0; i < MATRIX; i++)
        assert_true(value_of(2, i) == 1.0 + (double)i);
}

static void gradients_are_cut_down_to_the_limit_of_their_norm(void **state)
{
    const sw_optimizer adamw = {
        SW_OPTIMIZER_ADAMW, 1e-2, 0.0, 0.0, 0.0, 1.0, 1.0}; /* p -= lr * g / (|g| + 1) */
    double norm = sw_trained_norm(&list, kernel);
    double factor = 1.0 / (norm + 1e-6);

    (void)state;
    sw_trained_step(&list, kernel, &adamw, norm, 1);
    for (size_t i = 0; i < VECTOR; i++) {
        double g = factor * (2.0 + (double)i);
        assert_true(fabs(value_of(1, i) - (1.0 + (double)i - 1e-2 * g / (g + 1.0))) < 1e-13);
    }
}

static void gradients_below_the_limit_are_taken_as_they_are(void **state)
{
    const sw_optimizer adamw = {SW_OPTIMIZER_ADAMW, 1e-2, 0.0, 0.0, 0.0, 1.0, 100.0};

    (void)state;
    sw_trained_step(&list, kernel, &adamw, sw_trained_norm(&list, kernel), 1);
    assert_true(fabs(value_of(1, 0) - (1.0 - 1e-2 * 2.0 / 3.0)) < 1e-14);
}

/* As SGD of torch without momentum: p -= lr * (g + decay * p). */
static void sgd_without_momentum_keeps_nothing(void **state)
{
    const sw_optimizer sgd = {SW_OPTIMIZER_SGD, .lr = 1e-2, .decay = 0.1};

    (void)state;
    assert_int_equal(sw_optimizer_moments(SW_OPTIMIZER_SGD), 0);
    for (size_t i = 0; i < list.n_params; i++)
        params[i].moments[0] = params[i].moments[1] = NULL;
    for (uint64_t step = 1; step <= 2; step++)
        sw_trained_step(&list, kernel, &sgd, sw_trained_norm(&list, kernel), step);
    for (size_t i = 0; i < MATRIX; i++) {
        double p = 1.0 + (double)i;
        for (int step = 0; step < 2; step++)
            p -= 1e-2 * ((double)i - 1.0 + 0.1 * p);
        assert_true(fabs(value_of(0, i) - p) < 1e-13);
    }
    for (size_t i = 0; i < VECTOR; i++)
        assert_true(fabs(value_of(1, i) - (1.0 + (double)i - 2e-2 * (2.0 + (double)i))) < 1e-13);
}

static void sgd_with_momentum_goes_on_as_it_went(void **state)
{
    const sw_optimizer sgd = {SW_OPTIMIZER_SGD_MOMENTUM, .lr = 1e-2, .beta1 = 0.5};

    (void)state;
    assert_int_equal(sw_optimizer_moments(SW_OPTIMIZER_SGD_MOMENTUM), 1);
    for (uint64_t step = 1; step <= 3; step++)
        sw_trained_step(&list, kernel, &sgd, sw_trained_norm(&list, kernel), step);
    for (size_t i = 0; i < VECTOR; i++) { /* 1 + 1.5 + 1.75 times the gradient */
        double g = 2.0 + (double)i;
        assert_true(fabs(value_of(1, i) - (1.0 + (double)i - 4.25e-2 * g)) < 1e-13);
        assert_true(fabs(((const double *)params[1].moments[0])[i] - 1.75 * g) < 1e-13);
        assert_true(((const double *)params[1].moments[1])[i] == 0.0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_list, drop_list)
    const struct CMUnitTest tests[] = {
        TEST(the_norm_is_that_of_all_gradients_as_one_vector),
        TEST(matrices_decay_and_vectors_do_not),
        TEST(what_has_no_gradient_is_left_alone),
        TEST(gradients_are_cut_down_to_the_limit_of_their_norm),
        TEST(gradients_below_the_limit_are_taken_as_they_are),
        TEST(sgd_without_momentum_keeps_nothing),
        TEST(sgd_with_momentum_goes_on_as_it_went),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
