/*
 * Series and Newton's method over the parts of a double (checkpoint/fixed_math.h). Each function first brings
 * its argument into a short interval by its exponent, so that a fixed number of terms is enough.
 */
#include "checkpoint/fixed_math.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

#ifdef __FAST_MATH__
#error "the values of `shardwright init` need IEEE arithmetic: compile without -ffast-math"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "a double is computed as a double, not as something wider");
_Static_assert(DBL_MANT_DIG == 53, "a double is an IEEE double");

enum { MANTISSA_BITS = 52, BIAS = 1023 };

#define LN2_HIGH 0x1.62e42fefa38p-1   /* 42 bits: times an exponent it is exact */
#define LN2_LOW  0x1.ef35793c7673p-45 /* the rest of it */
#define SQRT2    0x1.6a09e667f3bcdp+0

static uint64_t bits_of(double x)
{
    uint64_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double x = 0;

    memcpy(&x, &bits, sizeof x);
    return x;
}

double sw_fixed_log(double x)
{
    uint64_t bits = bits_of(x);
    double exponent = (double)((int64_t)(bits >> MANTISSA_BITS) - BIAS);
    double m = of_bits((bits & ((UINT64_C(1) << MANTISSA_BITS) - 1)) | (uint64_t)BIAS << MANTISSA_BITS);

    if (m > SQRT2) {
        m *= 0.5;
        exponent += 1.0;
    }
    /* log m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172 */
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double sum = 0.0;
    for (int k = 23; k >= 3; k -= 2)
        sum = (sum + 2.0 / k) * z;
    return exponent * LN2_HIGH + (exponent * LN2_LOW + (2.0 * s + s * sum));
}

double sw_fixed_exp(double x)
{
    double turns = x / (LN2_HIGH + LN2_LOW);
    int64_t n = (int64_t)(turns < 0.0 ? turns - 0.5 : turns + 0.5);
    double r = (x - (double)n * LN2_HIGH) - (double)n * LN2_LOW;
    double sum = 1.0;

    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * r / k;
    return sum * of_bits((uint64_t)(n + BIAS) << MANTISSA_BITS);
}

double sw_fixed_sqrt(double x)
{
    /* Half the exponent, and half the mantissa beside it: 6 % off at most. Each step squares the error. */
    double y = of_bits((bits_of(x) >> 1) + ((uint64_t)BIAS << (MANTISSA_BITS - 1)));

    for (int step = 0; step < 4; step++)
        y = 0.5 * (y + x / y);
    return y;
}
