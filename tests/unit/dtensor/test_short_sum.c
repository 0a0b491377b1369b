/* Sums of short floats: in F32, rounded once. Roundings are of base/short_float.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dtensor/short_sum.h"

static uint16_t summed(sw_dtype dtype, const uint16_t *values, size_t n)
{
    float sum = 0;
    uint16_t out = 0;
    for (size_t i = 0; i < n; i++)
        sw_short_add(dtype, &sum, &values[i], 1);
    sw_short_round(dtype, &out, &sum, 1);
    return out;
}

static void short_floats_are_rounded_once(void **state)
{
    (void)state;
    const uint16_t one = 0x3f80;   /* 1 in bf16 */
    const uint16_t small = 0x3b80; /* 2^-8: half of the last bit of 1, lost when each sum is rounded */
    const uint16_t values[] = {one, small, small, small, small};
    assert_int_equal(summed(SW_DTYPE_BF16, values, 5), 0x3f82);

    const uint16_t halves[] = {0x3c00, 0x1000, 0x1000, 0x1000, 0x1000}; /* 1 and 2^-11 in f16, likewise */
    assert_int_equal(summed(SW_DTYPE_F16, halves, 5), 0x3c02);
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
        cmocka_unit_test(short_floats_are_rounded_once),
        cmocka_unit_test(no_other_dtype_is_a_short_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
