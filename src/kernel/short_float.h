/* One short float from and to F32, in integer arithmetic: the same bits on every machine. */
#ifndef SW_KERNEL_SHORT_FLOAT_H
#define SW_KERNEL_SHORT_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sw_bits_of_float(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float sw_float_of_bits(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float sw_float_of_bf16(uint16_t value)
{
    return sw_float_of_bits((uint32_t)value << 16);
}

static inline uint16_t sw_bf16_of_float(float value)
{
    uint32_t bits = sw_bits_of_float(value);

    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U); /* quiet, and not rounded to an infinity */
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline float sw_float_of_f16(uint16_t value)
{
    uint32_t sign = ((uint32_t)value & 0x8000U) << 16;
    uint32_t exponent = (uint32_t)value >> 10 & 0x1fU;
    uint32_t mantissa = (uint32_t)value & 0x3ffU;

    if (exponent == 0) {
        float magnitude = (float)mantissa / 16777216.0F; /* 2^-24 each */
        return sign != 0 ? -magnitude : magnitude;
    }
    uint32_t widened = exponent == 0x1fU ? 0xffU : exponent + 112; /* the biases are 15 and 127 */
    return sw_float_of_bits(sign | widened << 23 | mantissa << 13);
}

static inline uint16_t sw_f16_of_float(float value)
{
    uint32_t bits = sw_bits_of_float(value);
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
