/*
 * Narrowing to BF16 and F16: every number of the narrow type comes back, what lies between two goes to the
 * nearer one, and half way to the even one. Which numbers a type has is said here by ldexp().
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>

#include "checkpoint/narrow.h"

/* A narrow type: the bits of its exponent and mantissa. */
typedef struct format {
    int exponent_bits;
    int mantissa_bits;
    uint16_t (*narrow)(float value);
} format;

static const format bf16 = {8, 7, sw_bf16_of};
static const format f16 = {5, 10, sw_f16_of};

static double value_of(const format *f, uint32_t bits)
{
    int exponent = (int)(bits >> f->mantissa_bits) & ((1 << f->exponent_bits) - 1);
    int mantissa = (int)bits & ((1 << f->mantissa_bits) - 1);
    int bias = (1 << (f->exponent_bits - 1)) - 1;
    double sign = bits >> 15 == 0 ? 1.0 : -1.0;

    if (exponent == (1 << f->exponent_bits) - 1)
        return mantissa == 0 ? sign * HUGE_VAL : NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - f->mantissa_bits);
    return sign * ldexp(mantissa + (1 << f->mantissa_bits), exponent - bias - f->mantissa_bits);
}

static void expect(const format *f, double value, uint32_t bits)
{
    uint16_t found = f->narrow((float)value);

    if ((float)value != value)
        fail_msg("%a is no float: the test is wrong", value);
    if (found != bits)
        fail_msg("%a becomes %04x, not %04x", value, found, bits);
}

/* All numbers from 0 up, with their neighbours; the largest's next would be twice as far as the one before.
 */
static void check_all(const format *f)
{
    uint32_t infinity = ((1U << f->exponent_bits) - 1) << f->mantissa_bits;

    for (uint32_t bits = 0; bits < infinity; bits++) {
        double here = value_of(f, bits);
        double next = bits + 1 < infinity ? value_of(f, bits + 1) : 2.0 * here - value_of(f, bits - 1);
        double half = 0.5 * (here + next);
        expect(f, here, bits);
        expect(f, -here, bits | 0x8000U);
        if ((float)half != half || half == 0.0) /* BF16's subnormals: between them a float has no room */
            continue;
        expect(f, half, bits % 2 == 0 ? bits : bits + 1);
        expect(f, -half, (bits % 2 == 0 ? bits : bits + 1) | 0x8000U);
        expect(f, nextafterf((float)half, 0.0F), bits);
        expect(f, nextafterf((float)half, HUGE_VALF), bits + 1);
    }
    expect(f, HUGE_VAL, infinity);
    expect(f, -HUGE_VAL, infinity | 0x8000U);
}

static void bf16_is_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    check_all(&bf16);
}

static void f16_is_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    check_all(&f16);
}

static void what_is_no_number_stays_none(void **state)
{
    static const uint32_t nans[] = {0x7fc00000U, 0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU};

    (void)state;
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++) {
        float value = 0;
        memcpy(&value, &nans[i], sizeof value);
        assert_true(isnan(value_of(&bf16, sw_bf16_of(value))));
        assert_true(isnan(value_of(&f16, sw_f16_of(value))));
        assert_int_equal(sw_bf16_of(value) >> 15, nans[i] >> 31);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_is_rounded_to_the_nearest_even),
        cmocka_unit_test(f16_is_rounded_to_the_nearest_even),
        cmocka_unit_test(what_is_no_number_stays_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
