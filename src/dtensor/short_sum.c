/* Short floats to F32 and back (dtensor/short_sum.h), in integer arithmetic. */
#include "dtensor/short_sum.h"

#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float widen_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

/* To nearest, ties to even; a NaN stays one. */
static uint16_t narrow_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t rest = half & 0x7fff;
    if (rest >= 0x7c00) /* infinite, or no number */
        return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return float_of(sign | ((rest << 13) + (112U << 23)));
    float small = (float)rest * 0x1p-24F; /* exact */
    return sign != 0 ? -small : small;
}

/* To nearest, ties to even: by adding a number whose last bit is the last bit wanted. */
static uint16_t narrow_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t rest = bits & 0x7fffffff;

    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) /* 65520 and more */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) { /* below the least normal number: units of 2^-24 */
        float scaled = float_of(rest) + 0.5F;
        return (uint16_t)(sign | (bits_of(scaled) - bits_of(0.5F)));
    }
    return (uint16_t)(sign | (((rest + 0xfff + (rest >> 13 & 1)) >> 13) - (112U << 10)));
}

bool sw_is_short_float(sw_dtype dtype)
{
    return dtype == SW_DTYPE_BF16 || dtype == SW_DTYPE_F16;
}

void sw_short_add(sw_dtype dtype, float *sums, const uint16_t *values, size_t n)
{
    if (dtype == SW_DTYPE_BF16) {
        for (size_t i = 0; i < n; i++)
            sums[i] += widen_bf16(values[i]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sums[i] += widen_f16(values[i]);
}

void sw_short_round(sw_dtype dtype, uint16_t *out, const float *sums, size_t n)
{
    if (dtype == SW_DTYPE_BF16) {
        for (size_t i = 0; i < n; i++)
            out[i] = narrow_bf16(sums[i]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = narrow_f16(sums[i]);
}
