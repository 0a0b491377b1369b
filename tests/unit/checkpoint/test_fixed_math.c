/* Logarithm, exponential and root against the math library's: they may differ in the last places only. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <float.h>
#include <math.h>

#include "checkpoint/fixed_math.h"
#include "gen.h"

enum { N = 200000 };

static void expect_close(const char *what, double at, double found, double wanted, double ulps)
{
    if (!(fabs(found - wanted) <= ulps * DBL_EPSILON * fabs(wanted)))
        fail_msg("%s of %a is %a, not %a", what, at, found, wanted);
}

/* Positive numbers of all sizes: 2^-1000 to 2^1000. */
static double any_size(gen *g)
{
    double m = 1.0 + (double)(gen_u64(g) >> 12) * 0x1p-52;
    return ldexp(m, (int)gen_between(g, 0, 2000) - 1000);
}

static void roots_are_right_for_numbers_of_all_sizes(void **state)
{
    gen g = {0, 1};

    (void)state;
    for (int i = 0; i < N; i++) {
        double x = any_size(&g);
        expect_close("the root", x, sw_fixed_sqrt(x), sqrt(x), 1.0);
    }
    assert_true(sw_fixed_sqrt(1.0) == 1.0);
    assert_true(sw_fixed_sqrt(1024.0) == 32.0);
}

static void logarithms_are_right_for_numbers_of_all_sizes(void **state)
{
    gen g = {0, 2};

    (void)state;
    for (int i = 0; i < N; i++) {
        double x = any_size(&g);
        expect_close("the logarithm", x, sw_fixed_log(x), log(x), 2.0);
        x = 0.5 + (double)(gen_u64(&g) >> 12) * 0x1p-52; /* round 1, where it is small */
        if (x != 1.0)
            expect_close("the logarithm", x, sw_fixed_log(x), log(x), 4.0);
    }
    assert_true(sw_fixed_log(1.0) == 0.0);
}

static void exponentials_are_right_in_their_range(void **state)
{
    gen g = {0, 3};

    (void)state;
    for (int i = 0; i < N; i++) {
        double x = ((double)(gen_u64(&g) >> 12) * 0x1p-52 - 0.5) * 1400.0;
        expect_close("the exponential", x, sw_fixed_exp(x), exp(x), 2.0);
        expect_close("the exponential", x / 1400.0, sw_fixed_exp(x / 1400.0), exp(x / 1400.0), 2.0);
    }
    assert_true(sw_fixed_exp(0.0) == 1.0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_right_for_numbers_of_all_sizes),
        cmocka_unit_test(logarithms_are_right_for_numbers_of_all_sizes),
        cmocka_unit_test(exponentials_are_right_in_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
