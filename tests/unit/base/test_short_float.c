/* Short floats from and to F32, checked over all values of both. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/short_float.h"
#include "base/status.h"

typedef struct format {
    int n_mantissa; /* bits; the rest are the exponent and the sign */
    float (*widen)(uint16_t value);
    uint16_t (*narrow)(float value);
} format;

static const format formats[] = {
    {7,  sw_float_of_bf16, sw_bf16_of_float},
    {10, sw_float_of_f16,  sw_f16_of_float },
};

/* The value by its definition. */
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

static void every_short_float_has_its_value(void **state)
{
    (void)state;
    for (size_t f = 0; f < SW_COUNT(formats); f++) {
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            double expected = value_of((uint16_t)bits, formats[f].n_mantissa);
            float found = formats[f].widen((uint16_t)bits);
            assert_true(isnan(expected) ? isnan(found) : (double)found == expected);
            assert_int_equal(signbit(found) != 0, bits >> 15);
        }
    }
}

static void every_short_float_comes_back(void **state)
{
    (void)state;
    for (size_t f = 0; f < SW_COUNT(formats); f++) {
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            uint16_t again = formats[f].narrow(formats[f].widen((uint16_t)bits));
            if (isnan(value_of((uint16_t)bits, formats[f].n_mantissa)))
                assert_true(isnan(value_of(again, formats[f].n_mantissa)));
            else
                assert_int_equal(again, bits);
        }
    }
}

/* Between two neighbours: the middle goes to the even one, what is beside it to the nearer one. */
static void what_lies_between_two_goes_to_the_nearest(void **state)
{
    (void)state;
    for (size_t f = 0; f < SW_COUNT(formats); f++) {
        int n_mantissa = formats[f].n_mantissa;
        uint16_t infinity = (uint16_t)(0x7fff & ~((1 << n_mantissa) - 1));
        for (uint16_t bits = 0; bits + 1 < infinity; bits++) {
            float low = (float)value_of(bits, n_mantissa);
            float high = (float)value_of((uint16_t)(bits + 1), n_mantissa);
            float middle = low / 2 + high / 2;
            uint16_t even = bits % 2 == 0 ? bits : (uint16_t)(bits + 1);
            assert_int_equal(formats[f].narrow(nextafterf(middle, low)), bits);
            assert_int_equal(formats[f].narrow(middle), even);
            assert_int_equal(formats[f].narrow(nextafterf(middle, high)), bits + 1);
            assert_int_equal(formats[f].narrow(-middle), even | 0x8000);
        }
    }
}

static void what_is_too_large_becomes_infinite(void **state)
{
    (void)state;
    assert_int_equal(sw_f16_of_float(65519), 0x7bff);
    assert_int_equal(sw_f16_of_float(65520), 0x7c00);
    assert_int_equal(sw_f16_of_float(-65520), 0xfc00);
    assert_int_equal(sw_f16_of_float(INFINITY), 0x7c00);
    assert_int_equal(sw_bf16_of_float(0x1.fefffep127F), 0x7f7f);
    assert_int_equal(sw_bf16_of_float(0x1.ffp127F), 0x7f80);
    assert_int_equal(sw_bf16_of_float(-INFINITY), 0xff80);
}

/* Also one whose payload lies in the bits that are dropped. */
static void a_nan_stays_one_with_its_sign(void **state)
{
    static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff};

    (void)state;
    for (size_t f = 0; f < SW_COUNT(formats); f++) {
        for (size_t i = 0; i < SW_COUNT(nans); i++) {
            uint16_t bits = formats[f].narrow(sw_float_of_bits(nans[i]));
            assert_true(isnan(value_of(bits, formats[f].n_mantissa)));
            assert_int_equal(bits >> 15, nans[i] >> 31);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_float_has_its_value),
        cmocka_unit_test(every_short_float_comes_back),
        cmocka_unit_test(what_lies_between_two_goes_to_the_nearest),
        cmocka_unit_test(what_is_too_large_becomes_infinite),
        cmocka_unit_test(a_nan_stays_one_with_its_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
