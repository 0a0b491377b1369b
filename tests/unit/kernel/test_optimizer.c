/* Optimizers: three steps worked out by hand, variants over twenty steps, threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/optimizer.h"
#include "kernel_op.h"

static const double grads[3] = {0.1, -0.3, 0.2};

static void adamw_takes_the_steps_of_its_formula(void **state)
{
    double p = 0.5;
    double m = 0;
    double v = 0;
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    for (uint64_t step = 1; step <= 3; step++) {
        double grad = 2 * grads[step - 1]; /* clipped to the half */
        sw_optimizer_args args = {.n = 1,
                                  .param = &p,
                                  .grad = &grad,
                                  .m = &m,
                                  .v = &v,
                                  .step = step,
                                  .lr = 0.01,
                                  .decay = 0.1,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .clip = 0.5};
        sw_kernel_adamw(kernel, SW_DTYPE_F64, &args);
    }
    assert_true(fabs(p - 0.49322264406850536) < 1e-14);
    assert_true(fabs(m - 0.0011000000000000038) < 1e-15);
    assert_true(fabs(v - 0.0067262500000000065) < 1e-15);
    sw_kernel_destroy(kernel);
}

static void sgd_takes_the_steps_of_its_formula(void **state)
{
    double p = 0.5;
    double m = 99; /* the first step does not look at it */
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    for (uint64_t step = 1; step <= 3; step++) {
        sw_optimizer_args args = {.n = 1,
                                  .param = &p,
                                  .grad = &grads[step - 1],
                                  .m = &m,
                                  .step = step,
                                  .lr = 0.01,
                                  .decay = 0.1,
                                  .beta1 = 0.9,
                                  .clip = 1};
        sw_kernel_sgd(kernel, SW_DTYPE_F64, &args);
    }
    assert_true(fabs(p - 0.49818819849999996) < 1e-14);
    assert_true(fabs(m - 0.14633015000000008) < 1e-14);
    sw_optimizer_args plain = {.n = 1, .param = &p, .grad = &grads[0], .step = 4, .lr = 1, .clip = 1};
    double before = p;
    sw_kernel_sgd(kernel, SW_DTYPE_F64, &plain);
    assert_true(p == before - grads[0]);
    sw_kernel_destroy(kernel);
}

/* p, m and v of n values after twenty steps. */
static void run_steps(const sw_kernel *kernel, size_t n, float *values[3])
{
    float *grad = malloc(n * sizeof *grad + 1);
    gen g = {11, 11};

    assert_non_null(grad);
    gen_fill(&g, SW_DTYPE_F32, values[0], n);
    memset(values[1], 0, n * sizeof(float));
    memset(values[2], 0, n * sizeof(float));
    for (uint64_t step = 1; step <= 20; step++) {
        gen_fill(&g, SW_DTYPE_F32, grad, n);
        sw_optimizer_args args = {.n = n,
                                  .param = values[0],
                                  .grad = grad,
                                  .m = values[1],
                                  .v = values[2],
                                  .step = step,
                                  .lr = 1e-2,
                                  .decay = 0.1,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .clip = 0.7};
        sw_kernel_adamw(kernel, SW_DTYPE_F32, &args);
    }
    free(grad);
}

static void variants_and_threads_take_the_same_steps(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 16, 33, 40001};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        float *values[3][3];
        size_t n = sizes[s];
        for (size_t i = 0; i < 9; i++)
            values[i / 3][i % 3] = guarded_alloc(SW_DTYPE_F32, n);
        sw_kernel *reference = kernel_of(SW_KERNEL_REFERENCE, 1);
        run_steps(reference, n, values[0]);
        for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
            if (!sw_kernel_variant_runs(v))
                continue;
            sw_kernel *one = kernel_of(v, 1);
            sw_kernel *three = kernel_of(v, 3);
            run_steps(one, n, values[1]);
            run_steps(three, n, values[2]);
            for (size_t i = 0; i < 3; i++) {
                assert_true(largest_error(SW_DTYPE_F32, values[1][i], values[0][i], n, 1) < 1e-6);
                assert_memory_equal(values[1][i], values[2][i], n * sizeof(float));
            }
            sw_kernel_destroy(one);
            sw_kernel_destroy(three);
        }
        for (size_t i = 0; i < 9; i++)
            assert_true(guarded_free(values[i / 3][i % 3], SW_DTYPE_F32, n));
        sw_kernel_destroy(reference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_takes_the_steps_of_its_formula),
        cmocka_unit_test(sgd_takes_the_steps_of_its_formula),
        cmocka_unit_test(variants_and_threads_take_the_same_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
