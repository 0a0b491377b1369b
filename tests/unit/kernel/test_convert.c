/* Conversions: every short float, every kind of F32, each variant, against arithmetic of another kind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/convert.h"
#include "kernel_op.h"

enum { ALL = 65536 };

/* A short float of `exponent_bits` as a number, by its definition. */
static double value_of(uint16_t bits, uint32_t exponent_bits)
{
    uint32_t mantissa_bits = 15 - exponent_bits;
    uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
    uint32_t exponent = (uint32_t)bits >> mantissa_bits & ((1U << exponent_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double sign = bits >> 15 != 0 ? -1 : 1;

    if (exponent == (1U << exponent_bits) - 1)
        return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - (int)mantissa_bits);
    return sign * ldexp(mantissa + (double)(1U << mantissa_bits), (int)exponent - bias - (int)mantissa_bits);
}

/* By search: the nearest of the two neighbours, the even one of two that are as near. */
static uint16_t nearest(float x, uint32_t exponent_bits)
{
    uint16_t infinity = (uint16_t)(((1U << exponent_bits) - 1) << (15 - exponent_bits));
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double size = fabs((double)x);
    uint16_t low = 0;
    uint16_t high = infinity;

    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (value_of(middle, exponent_bits) <= size)
            low = middle;
        else
            high = middle;
    }
    /* what would come after the largest number, were there no infinity */
    double above = high == infinity
                       ? 2 * value_of(low, exponent_bits) - value_of((uint16_t)(low - 1), exponent_bits)
                       : value_of(high, exponent_bits);
    double to_low = size - value_of(low, exponent_bits);
    double to_high = above - size;
    int is_high = isinf(size) || to_high < to_low || (to_high == to_low && low % 2 == 1);
    return (uint16_t)(sign | (is_high ? high : low));
}

typedef struct direction {
    uint32_t exponent_bits;
    void (*narrow)(const sw_kernel *kernel, const float *from, uint16_t *to, size_t n);
    void (*widen)(const sw_kernel *kernel, const uint16_t *from, float *to, size_t n);
} direction;

static const direction directions[] = {
    {8, sw_kernel_to_bf16, sw_kernel_from_bf16},
    {5, sw_kernel_to_f16,  sw_kernel_from_f16 },
};

typedef void variant_check(const sw_kernel *kernel, const direction *d);

static void for_each_variant(variant_check *check)
{
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 2);
        check(kernel, &directions[0]);
        check(kernel, &directions[1]);
        sw_kernel_destroy(kernel);
    }
}

static void check_every_short_float(const sw_kernel *kernel, const direction *d)
{
    static uint16_t all[ALL];
    static uint16_t back[ALL];
    static float wide[ALL];

    for (size_t i = 0; i < ALL; i++)
        all[i] = (uint16_t)i;
    d->widen(kernel, all, wide, ALL);
    d->narrow(kernel, wide, back, ALL);
    for (size_t i = 0; i < ALL; i++) {
        double value = value_of(all[i], d->exponent_bits);
        if (isnan(value)) {
            assert_true(isnan(wide[i]) && isnan(value_of(back[i], d->exponent_bits)));
            assert_int_equal(back[i] >> 15, all[i] >> 15);
        } else {
            assert_true((double)wide[i] == value);
            assert_int_equal(back[i], all[i]);
        }
    }
}

static void every_short_float_goes_there_and_back(void **state)
{
    (void)state;
    for_each_variant(check_every_short_float);
}

static float float_of(uint32_t bits)
{
    float x = 0;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Bits at random have all exponents; half of them lie next to a tie. */
static void check_rounding(const sw_kernel *kernel, const direction *d)
{
    enum { N = 20011 };
    static float from[N];
    static uint16_t to[N];
    gen g = {5, 5};

    for (size_t i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)gen_u64(&g);
        uint32_t drop = d->exponent_bits == 8 ? 16 : 13;
        if (i % 2 == 0)
            bits = (bits >> drop << drop | 1U << (drop - 1)) + gen_below(&g, 3) - 1;
        if (i % 4 < 2 && d->exponent_bits == 5) /* into the range of F16 and its subnormals */
            bits = (bits & 0x807fffffU) | (100 + gen_below(&g, 46)) << 23;
        from[i] = float_of(bits);
    }
    from[0] = 0x1.ffdffep15F; /* below and at half way between 65504 and infinity */
    from[1] = 0x1.ffep15F;
    from[2] = 0x1p-25F; /* half of the smallest of F16 is even zero */
    from[3] = 0x1.000002p-25F;
    d->narrow(kernel, from, to, N);
    for (size_t i = 0; i < N; i++) {
        if (isnan(from[i]))
            assert_true(isnan(value_of(to[i], d->exponent_bits)));
        else
            assert_int_equal(to[i], nearest(from[i], d->exponent_bits));
    }
}

static void numbers_are_rounded_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for_each_variant(check_rounding);
}

static void check_sizes(const sw_kernel *kernel, const direction *d)
{
    for (size_t n = 0; n < 40; n++) {
        float *wide = guarded_alloc(SW_DTYPE_F32, n);
        uint16_t *narrow = guarded_alloc(SW_DTYPE_F32, (n + 1) / 2);
        memset(wide, 0, n * sizeof *wide);
        memset(narrow, 0x5a, (n + 1) / 2 * sizeof(float));
        d->narrow(kernel, wide, narrow, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(narrow[i], 0);
        if (n % 2 == 1)
            assert_int_equal(narrow[n], 0x5a5a);
        d->widen(kernel, narrow, wide, n);
        assert_true(guarded_free(wide, SW_DTYPE_F32, n));
        assert_true(guarded_free(narrow, SW_DTYPE_F32, (n + 1) / 2));
    }
}

static void any_number_of_elements_is_converted_and_no_more(void **state)
{
    (void)state;
    for_each_variant(check_sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_float_goes_there_and_back),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(any_number_of_elements_is_converted_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
