/* The probes do what they say: shares that are whole, and the library's own product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/probe.h"

static sw_kernel *kernel_of(uint32_t n_threads)
{
    sw_kernel *kernel = NULL;
    sw_error err = {0};

    assert_int_equal(sw_kernel_create(&kernel, n_threads, SW_KERNEL_BEST, &err), SW_OK);
    return kernel;
}

static void a_copy_by_several_threads_is_whole(void **state)
{
    enum { N = 12 * 1024 };
    char *from = malloc(N);
    char *to = calloc(1, N);

    (void)state;
    for (size_t i = 0; i < N; i++)
        from[i] = (char)(i * 7 + i / 256 + 1);
    for (uint32_t n_threads = 1; n_threads <= 4; n_threads++) {
        sw_kernel *kernel = kernel_of(n_threads);
        memset(to, 0, N);
        sw_probe_copy(kernel, to, from, N);
        assert_memory_equal(to, from, N);
        sw_probe_read(kernel, from, N); /* within the bounds, which the sanitizer watches */
        sw_kernel_destroy(kernel);
    }
    free(from);
    free(to);
}

static void the_peak_counts_the_work_of_all_threads(void **state)
{
    sw_kernel *one = kernel_of(1);
    sw_kernel *three = kernel_of(3);

    (void)state;
    assert_true(sw_probe_peak_flops(one) > 0);
    assert_true(sw_probe_peak_flops(three) == 3 * sw_probe_peak_flops(one));
    sw_probe_peak(one);
    sw_kernel_destroy(one);
    sw_kernel_destroy(three);
}

static void a_line_goes_between_two_threads_and_not_from_one(void **state)
{
    sw_kernel *one = kernel_of(1);
    sw_kernel *two = kernel_of(2);

    (void)state;
    assert_true(sw_probe_line(one) == 0);
    double seconds = sw_probe_line(two); /* 0 where the system ran one thread after the other */
    assert_true(seconds >= 0 && seconds < 1e-3);
    sw_kernel_destroy(one);
    sw_kernel_destroy(two);
}

static void the_library_called_directly_makes_the_same_product(void **state)
{
    enum { M = 5, N = 7, K = 3 };
    float a[M * K];
    float b[K * N];
    float c[M * N];
    sw_product p = {.m = M,
                    .n = N,
                    .k = K,
                    .a = a,
                    .b = b,
                    .c = c,
                    .a_type = SW_DTYPE_F32,
                    .b_type = SW_DTYPE_F32,
                    .c_type = SW_DTYPE_F32,
                    .b_is_transposed = true};
    sw_kernel *kernel = kernel_of(1);
    sw_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = (float)i;
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = 2 - (float)i;
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        sw_probe_product *probe = NULL;
        sw_status status = sw_probe_product_create(&probe, kernel, &p, is_packed, &err);
        if (sw_probe_library_name() == NULL) {
            assert_int_equal(status, SW_E_ARGUMENT);
            assert_string_equal(err.what, "this build has no library of products");
            continue;
        }
        assert_int_equal(status, SW_OK);
        memset(c, 0, sizeof c);
        sw_probe_product_run(probe);
        for (size_t i = 0; i < M; i++) {
            for (size_t j = 0; j < N; j++) {
                float sum = 0;
                for (size_t k = 0; k < K; k++)
                    sum += a[i * K + k] * b[j * K + k];
                assert_true(c[i * N + j] == sum); /* small whole numbers: exact */
            }
        }
        sw_probe_product_destroy(probe);
    }
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_by_several_threads_is_whole),
        cmocka_unit_test(the_peak_counts_the_work_of_all_threads),
        cmocka_unit_test(a_line_goes_between_two_threads_and_not_from_one),
        cmocka_unit_test(the_library_called_directly_makes_the_same_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
