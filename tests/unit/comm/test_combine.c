/* Combinations of short floats against all of their values, and of integers at their ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/combine.h"

static float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023;
    double magnitude = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31)
        magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

static uint16_t combined(uint16_t a, uint16_t b, sw_dtype dtype, sw_combine_op op)
{
    const void *parts[] = {&a, &b};
    uint16_t out = 0;
    sw_combine(&out, parts, 2, 1, dtype, op);
    return out;
}

static void every_short_float_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t value = (uint16_t)bits;
        uint16_t same = combined(value, 0, SW_DTYPE_F16, SW_COMBINE_SUM);
        if (isnan(f16_value(value)))
            assert_true(isnan(f16_value(same)));
        else if (value != 0x8000) /* -0 + 0 is 0 */
            assert_int_equal(same, value);
        same = combined(value, 0, SW_DTYPE_BF16, SW_COMBINE_SUM);
        if (isnan(bf16_value(value)))
            assert_true(isnan(bf16_value(same)));
        else if (value != 0x8000)
            assert_int_equal(same, value);
    }
}

/* Is `found` the nearest of all F16 to `exact`, the even one of two? Its neighbours are no nearer. */
static void is_nearest_f16(uint16_t found, double exact)
{
    double here = f16_value(found);
    if (isinf(here)) {
        assert_true(fabs(exact) >= 65520);
        return;
    }
    for (int step = -1; step <= 1; step += 2) {
        uint16_t magnitude = found & 0x7fff;
        if (magnitude == 0 && step < 0)
            continue;
        uint16_t other = (uint16_t)((found & 0x8000) | (uint16_t)(magnitude + step));
        double gap = fabs(f16_value(other) - exact) - fabs(here - exact);
        assert_true(isinf(f16_value(other)) || gap > 0 || (gap == 0 && found % 2 == 0));
    }
}

static void sums_of_f16_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    for (uint32_t a = 0; a < 0x7c00; a += 37) {
        for (uint32_t b = 0; b < 0x7c00; b += 41) {
            uint16_t other = (uint16_t)(b | (b % 2 == 0 ? 0x8000 : 0));
            double exact = f16_value((uint16_t)a) + f16_value(other);
            is_nearest_f16(combined((uint16_t)a, other, SW_DTYPE_F16, SW_COMBINE_SUM), (double)(float)exact);
        }
    }
}

static void sums_of_bf16_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(combined(0x4380, 0x3f80, SW_DTYPE_BF16, SW_COMBINE_SUM),
                     0x4380); /* 256 + 1: a tie, to even */
    assert_int_equal(combined(0x4381, 0x3f80, SW_DTYPE_BF16, SW_COMBINE_SUM), 0x4382); /* 258 + 1 */
    assert_int_equal(combined(0x7f7f, 0x7f7f, SW_DTYPE_BF16, SW_COMBINE_SUM),
                     0x7f80); /* too large: infinity */
}

static void integers_wrap_and_compare_with_their_sign(void **state)
{
    (void)state;
    const int32_t a = INT32_MAX;
    const int32_t b = 1;
    const void *parts[] = {&a, &b};
    int32_t out = 0;
    sw_combine(&out, parts, 2, 1, SW_DTYPE_I32, SW_COMBINE_SUM);
    assert_int_equal(out, INT32_MIN);
    const int8_t minus = -1;
    const int8_t plus = 1;
    const void *bytes[] = {&minus, &plus};
    int8_t byte = 0;
    uint8_t unsigned_byte = 0;
    sw_combine(&byte, bytes, 2, 1, SW_DTYPE_I8, SW_COMBINE_MAX);
    assert_int_equal(byte, 1);
    sw_combine(&unsigned_byte, bytes, 2, 1, SW_DTYPE_U8, SW_COMBINE_MAX);
    assert_int_equal(unsigned_byte, 255);
}

static void long_parts_are_combined_in_order_and_in_place(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float first[N];
    static float second[N];
    static float third[N];
    const void *parts[] = {first, second, third};
    for (int i = 0; i < N; i++) {
        first[i] = 1e8F;
        second[i] = -1e8F;
        third[i] = (float)i * 0.25F; /* lost when it is added to 1e8 first */
    }
    sw_combine(first, parts, 3, N, SW_DTYPE_F32, SW_COMBINE_SUM);
    for (int i = 0; i < N; i++)
        assert_true(first[i] == (float)i * 0.25F);
}

/* 256 + 1 + 1 + 1 is 260 in BF16 when it is rounded once, and 256 when each sum is. */
static void sums_in_two_goes_are_rounded_once(void **state)
{
    (void)state;
    const uint16_t values[] = {0x4380, 0x3f80, 0x3f80, 0x3f80};
    const void *left[] = {&values[0], &values[1]};
    const void *right[] = {&values[2], &values[3]};
    float sums[2] = {0};
    const void *both[] = {&sums[0], &sums[1]};
    uint16_t out = 0;

    assert_int_equal(sw_combine_width(SW_DTYPE_BF16, SW_COMBINE_SUM), 4);
    sw_combine_begin(&sums[0], left, 2, 1, SW_DTYPE_BF16, SW_COMBINE_SUM);
    sw_combine_begin(&sums[1], right, 2, 1, SW_DTYPE_BF16, SW_COMBINE_SUM);
    assert_true(sums[0] == 257 && sums[1] == 2);
    sw_combine_end(&out, both, 2, 1, SW_DTYPE_BF16, SW_COMBINE_SUM);
    assert_int_equal(out, 0x4382);
}

/* What is no sum of short floats is the same in one go and in two, also of one part alone. */
static void other_combinations_are_the_same_in_two_goes(void **state)
{
    (void)state;
    const uint16_t values[] = {0x4380, 0x3f80};
    const void *parts[] = {&values[0], &values[1]};
    uint16_t most = 0;
    uint16_t out = 0;

    assert_int_equal(sw_combine_width(SW_DTYPE_F16, SW_COMBINE_MAX), 2);
    assert_int_equal(sw_combine_width(SW_DTYPE_I64, SW_COMBINE_SUM), 8);
    sw_combine_begin(&most, parts, 2, 1, SW_DTYPE_BF16, SW_COMBINE_MAX);
    const void *one[] = {&most};
    sw_combine_end(&out, one, 1, 1, SW_DTYPE_BF16, SW_COMBINE_MAX);
    assert_int_equal(out, 0x4380);
}

static void what_cannot_be_combined_is_known(void **state)
{
    (void)state;
    assert_true(sw_can_combine(SW_DTYPE_BF16, SW_COMBINE_SUM));
    assert_true(sw_can_combine(SW_DTYPE_BOOL, SW_COMBINE_MAX));
    assert_false(sw_can_combine(SW_DTYPE_BOOL, SW_COMBINE_SUM));
    assert_false(sw_can_combine(SW_DTYPE_F4, SW_COMBINE_SUM));
    assert_false(sw_can_combine(SW_DTYPE_F8_E4M3, SW_COMBINE_MAX));
    assert_false(sw_can_combine(SW_DTYPE_UNKNOWN, SW_COMBINE_SUM));
    assert_false(sw_can_combine(SW_DTYPE_COUNT_, SW_COMBINE_SUM));
    assert_false(sw_can_combine(SW_DTYPE_F32, SW_COMBINE_OP_COUNT_));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_float_survives),
        cmocka_unit_test(sums_of_f16_are_rounded_to_the_nearest),
        cmocka_unit_test(sums_of_bf16_are_rounded_to_the_nearest),
        cmocka_unit_test(integers_wrap_and_compare_with_their_sign),
        cmocka_unit_test(long_parts_are_combined_in_order_and_in_place),
        cmocka_unit_test(sums_in_two_goes_are_rounded_once),
        cmocka_unit_test(other_combinations_are_the_same_in_two_goes),
        cmocka_unit_test(what_cannot_be_combined_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
