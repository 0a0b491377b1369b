/* Sums of short floats, in F32 and rounded once: checked over all values of both. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dtensor/short_sum.h"

/* The value of a short float of `n_mantissa` bits, by its definition. */
static double value_of(uint16_t bits, int n_mantissa)
{
    int n_exponent = 15 - n_mantissa;
    int bias = (1 << (n_exponent - 1)) - 1;
    int exponent = bits >> n_mantissa & ((1 << n_exponent) - 1);
    int mantissa = bits & ((1 << n_mantissa) - 1);
    double sign = (bits & 0x8000) != 0 ? -1 : 1;

    if (exponent == (1 << n_exponent) - 1)
        return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - n_mantissa);
    return sign * ldexp(mantissa + (1 << n_mantissa), exponent - bias - n_mantissa);
}

static uint16_t summed(sw_dtype dtype, const uint16_t *values, size_t n)
{
    float sum = 0;
    uint16_t out = 0;
    for (size_t i = 0; i < n; i++)
        sw_short_add(dtype, &sum, &values[i], 1);
    sw_short_round(dtype, &out, &sum, 1);
    return out;
}

static void assert_all_values_stay(sw_dtype dtype, int n_mantissa)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        uint16_t half = (uint16_t)bits;
        uint16_t again = summed(dtype, &half, 1);
        double value = value_of(half, n_mantissa);
        if (isnan(value))
            assert_true(isnan(value_of(again, n_mantissa)));
        else if (value == 0)
            assert_true(value_of(again, n_mantissa) == 0);
        else
            assert_int_equal(again, half);
    }
}

/* Between two neighbours: the middle goes to the even one, what is beside it to the nearer one. */
static void assert_rounds_to_nearest(sw_dtype dtype, int n_mantissa)
{
    uint16_t largest = (uint16_t)(0x7fff & ~((1 << n_mantissa) - 1)); /* infinity */

    for (uint16_t half = 0; half + 1 < largest; half++) {
        float low = (float)value_of(half, n_mantissa);
        float high = (float)value_of((uint16_t)(half + 1), n_mantissa);
        float middle = low / 2 + high / 2;
        float sums[] = {nextafterf(middle, low), middle, nextafterf(middle, high), -middle};
        uint16_t even = half % 2 == 0 ? half : (uint16_t)(half + 1);
        uint16_t out[4];
        sw_short_round(dtype, out, sums, 4);
        assert_int_equal(out[0], half);
        assert_int_equal(out[1], even);
        assert_int_equal(out[2], half + 1);
        assert_int_equal(out[3], even | 0x8000);
    }
}

static void every_short_float_alone_is_its_own_sum(void **state)
{
    (void)state;
    assert_all_values_stay(SW_DTYPE_BF16, 7);
    assert_all_values_stay(SW_DTYPE_F16, 10);
}

static void sums_of_short_floats_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    assert_rounds_to_nearest(SW_DTYPE_F16, 10);
    assert_rounds_to_nearest(SW_DTYPE_BF16, 7);
}

static void short_floats_are_rounded_once(void **state)
{
    (void)state;
    const uint16_t one = 0x3f80;   /* 1 in bf16 */
    const uint16_t small = 0x3b80; /* 2^-8: half of the last bit of 1, lost when each sum is rounded */
    const uint16_t values[] = {one, small, small, small, small};
    assert_int_equal(summed(SW_DTYPE_BF16, values, 5), 0x3f82);
}

static void what_is_too_large_becomes_infinite(void **state)
{
    (void)state;
    const float sums[] = {65519, 65520, -65520, INFINITY, NAN};
    uint16_t out[5];
    sw_short_round(SW_DTYPE_F16, out, sums, 5);
    assert_int_equal(out[0], 0x7bff);
    assert_int_equal(out[1], 0x7c00);
    assert_int_equal(out[2], 0xfc00);
    assert_int_equal(out[3], 0x7c00);
    assert_true(isnan(value_of(out[4], 10)));
}

static void no_other_dtype_is_a_short_float(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < SW_DTYPE_COUNT_; dtype++)
        assert_int_equal(sw_is_short_float((sw_dtype)dtype), dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_float_alone_is_its_own_sum),
        cmocka_unit_test(sums_of_short_floats_are_rounded_to_the_nearest),
        cmocka_unit_test(short_floats_are_rounded_once),
        cmocka_unit_test(what_is_too_large_becomes_infinite),
        cmocka_unit_test(no_other_dtype_is_a_short_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
