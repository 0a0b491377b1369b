/*
 * A float as BF16 or F16, rounded to the nearest, ties to the even one, in integer arithmetic: the same bits
 * whatever the compiler and the machine. Infinities stay, what is too large becomes one, NaN stays NaN.
 */
#ifndef SW_CHECKPOINT_NARROW_H
#define SW_CHECKPOINT_NARROW_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sw_f32_bits(float value)
{
    uint32_t bits = 0;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint16_t sw_bf16_of(float value)
{
    uint32_t bits = sw_f32_bits(value);

    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U); /* quiet, and not rounded to an infinity */
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline uint16_t sw_f16_of(float value)
{
    uint32_t bits = sw_f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;

    if (rest > 0x7f800000U)
        return (uint16_t)(sign | 0x7e00U);
    if (rest >= 0x477ff000U) /* 65520, half way between the largest and the next */
        return (uint16_t)(sign | 0x7c00U);
    if (rest < 0x33000000U) /* below half of the smallest */
        return (uint16_t)sign;
    uint32_t exponent = rest >> 23;
    uint32_t mantissa = (rest & 0x7fffffU) | 0x800000U;
    uint32_t drop = exponent < 113 ? 126 - exponent : 13; /* bits; more of them where F16 is subnormal */
    uint32_t kept = mantissa >> drop;
    uint32_t lost = mantissa & ((1U << drop) - 1);
    uint32_t half = 1U << (drop - 1);
    uint32_t up = lost > half || (lost == half && (kept & 1U) != 0);
    uint32_t base = exponent < 113 ? 0 : (exponent - 113) << 10; /* `kept` brings its leading bit along */
    return (uint16_t)(sign | (base + kept + up));
}

#endif
