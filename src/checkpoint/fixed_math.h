/*
 * Logarithm, exponential and square root in a fixed sequence of IEEE double operations: the same bits on any
 * machine, which a math library does not promise. Exact to a few units in the last place. What rests on it
 * (checkpoint/random.h, `shardwright init`) must be compiled without contraction to fused operations and
 * without fast-math. In the header, and without loops, so that callers' loops become vector code.
 */
#ifndef SW_CHECKPOINT_FIXED_MATH_H
#define SW_CHECKPOINT_FIXED_MATH_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the values of `shardwright init` need IEEE arithmetic: compile without -ffast-math"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "a double is computed as a double, not as something wider");
_Static_assert(DBL_MANT_DIG == 53, "a double is an IEEE double");

enum { SW_MANTISSA_BITS = 52, SW_EXPONENT_BIAS = 1023 };

#define SW_LN2_HIGH 0x1.62e42fefa38p-1   /* 42 bits: times an exponent it is exact */
#define SW_LN2_LOW  0x1.ef35793c7673p-45 /* the rest of it */
#define SW_SQRT2    0x1.6a09e667f3bcdp+0

static inline uint64_t sw_double_bits(double x)
{
    uint64_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double sw_double_of(uint64_t bits)
{
    double x = 0;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Positive, finite, not subnormal. */
static inline double sw_fixed_log(double x)
{
    uint64_t bits = sw_double_bits(x);
    double exponent = (double)((int64_t)(bits >> SW_MANTISSA_BITS) - SW_EXPONENT_BIAS);
    double m = sw_double_of((bits & ((UINT64_C(1) << SW_MANTISSA_BITS) - 1)) | (uint64_t)SW_EXPONENT_BIAS
                                                                                   << SW_MANTISSA_BITS);

    exponent += m > SW_SQRT2 ? 1.0 : 0.0;
    m *= m > SW_SQRT2 ? 0.5 : 1.0;
    /* log m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172 */
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double sum = z * (2.0 / 23);
    sum = (sum + 2.0 / 21) * z;
    sum = (sum + 2.0 / 19) * z;
    sum = (sum + 2.0 / 17) * z;
    sum = (sum + 2.0 / 15) * z;
    sum = (sum + 2.0 / 13) * z;
    sum = (sum + 2.0 / 11) * z;
    sum = (sum + 2.0 / 9) * z;
    sum = (sum + 2.0 / 7) * z;
    sum = (sum + 2.0 / 5) * z;
    sum = (sum + 2.0 / 3) * z;
    return exponent * SW_LN2_HIGH + (exponent * SW_LN2_LOW + (2.0 * s + s * sum));
}

/* From -700 to 700. */
static inline double sw_fixed_exp(double x)
{
    double turns = x / (SW_LN2_HIGH + SW_LN2_LOW);
    int64_t n = (int64_t)(turns < 0.0 ? turns - 0.5 : turns + 0.5);
    double r = (x - (double)n * SW_LN2_HIGH) - (double)n * SW_LN2_LOW;
    double sum = 1.0;

    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * r / k;
    return sum * sw_double_of((uint64_t)(n + SW_EXPONENT_BIAS) << SW_MANTISSA_BITS);
}

/* Positive, finite, not subnormal. */
static inline double sw_fixed_sqrt(double x)
{
    /* Half the exponent, and half the mantissa beside it: 6 % off at most. Each step squares the error. */
    double y =
        sw_double_of((sw_double_bits(x) >> 1) + ((uint64_t)SW_EXPONENT_BIAS << (SW_MANTISSA_BITS - 1)));

    y = 0.5 * (y + x / y);
    y = 0.5 * (y + x / y);
    y = 0.5 * (y + x / y);
    return 0.5 * (y + x / y);
}

#endif
