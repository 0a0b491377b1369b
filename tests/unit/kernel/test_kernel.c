/* The context: which variant it takes, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "kernel/loops.h"
#include "kernel_op.h"

static void a_context_takes_the_best_variant_that_runs(void **state)
{
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 3);
    sw_kernel_variant best = sw_kernel_variant_of(kernel);

    (void)state;
    assert_true(sw_kernel_variant_runs(best));
    for (int v = (int)best + 1; v < SW_KERNEL_VARIANT_COUNT_; v++)
        assert_false(sw_kernel_variant_runs((sw_kernel_variant)v));
    assert_int_equal(sw_kernel_threads(kernel), 3);
    sw_kernel_destroy(kernel);
    kernel = kernel_of(SW_KERNEL_BEST, 0);
    assert_true(sw_kernel_threads(kernel) >= 1);
    sw_kernel_destroy(kernel);
}

static void the_environment_chooses_a_variant_by_name(void **state)
{
    sw_error err = {0};
    sw_kernel *kernel = NULL;

    (void)state;
    assert_int_equal(setenv("SW_KERNEL", "reference", 1), 0);
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err), SW_OK);
    assert_string_equal(sw_kernel_variant_name(sw_kernel_variant_of(kernel)), "reference");
    sw_kernel_destroy(kernel);
    assert_int_equal(setenv("SW_KERNEL", "avx3", 1), 0);
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "SW_KERNEL: there is no variant 'avx3'");
    assert_int_equal(unsetenv("SW_KERNEL"), 0);
}

static void what_cannot_run_is_refused(void **state)
{
    sw_error err = {0};
    sw_kernel *kernel = NULL;

    (void)state;
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_VARIANT_COUNT_, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "this processor cannot run the kernels '?'");
    assert_int_equal(sw_kernel_create(&kernel, 5000, SW_KERNEL_REFERENCE, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "5000 threads are more than 4096");
    sw_alloc_fail_at(1);
    assert_int_equal(sw_kernel_create(&kernel, 1, SW_KERNEL_REFERENCE, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_null(kernel);
    assert_null(sw_kernel_variant_name(SW_KERNEL_VARIANT_COUNT_));
}

/* The table has no holes: a loop that a variant leaves out is the reference's. */
static void every_loop_has_a_function(void **state)
{
    (void)state;
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        for (int i = 0; i < SW_LOOP_COUNT_; i++)
            assert_non_null(sw_kernel_loop(kernel, SW_DTYPE_F32, (sw_loop)i));
        sw_kernel_destroy(kernel);
    }
}

static void count_block(const void *args, size_t begin, size_t end)
{
    uint8_t *const *seen = args;
    for (size_t i = begin; i < end; i++)
        (*seen)[i]++;
}

static void blocks_cover_every_item_once(void **state)
{
    uint8_t seen[1000];
    uint8_t *at = seen;

    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, threads);
        for (size_t n = 0; n < sizeof seen; n += 37) {
            for (size_t grain = 1; grain < 2000; grain = grain * 3 + 1) {
                memset(seen, 0, sizeof seen);
                sw_kernel_run(kernel, count_block, &at, n, grain);
                sw_kernel_run_uneven(kernel, count_block, &at, n, grain);
                for (size_t i = 0; i < sizeof seen; i++)
                    assert_int_equal(seen[i], i < n ? 2 : 0);
            }
        }
        sw_kernel_destroy(kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_takes_the_best_variant_that_runs),
        cmocka_unit_test(the_environment_chooses_a_variant_by_name),
        cmocka_unit_test(what_cannot_run_is_refused),
        cmocka_unit_test(every_loop_has_a_function),
        cmocka_unit_test(blocks_cover_every_item_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
