/*
 * One short float (BF16, F16) from and to F32: rounded to the nearest, ties to the even one; infinities stay,
 * what is too large becomes one, subnormals are kept, NaN stays NaN. Without branches, so that loops of them
 * become vector code, and without subnormals of F32, which a processor may be told to flush.
 */
#ifndef SW_BASE_SHORT_FLOAT_H
#define SW_BASE_SHORT_FLOAT_H

#include <stdbool.h>
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

/* A choice that stays one: compilers make branches of some others. */
static inline uint32_t sw_choose_bits(bool is_first, uint32_t first, uint32_t second)
{
    uint32_t mask = 0U - (uint32_t)is_first;
    return (first & mask) | (second & ~mask);
}

static inline float sw_float_of_bf16(uint16_t value)
{
    return sw_float_of_bits((uint32_t)value << 16);
}

static inline uint16_t sw_bf16_of_float(float value)
{
    uint32_t bits = sw_bits_of_float(value);
    uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40U; /* a NaN, not rounded to an infinity */

    return (uint16_t)(sw_choose_bits((bits & 0x7fffffffU) > 0x7f800000U, quiet, rounded));
}

static inline float sw_float_of_f16(uint16_t value)
{
    uint32_t sign = ((uint32_t)value & 0x8000U) << 16;
    uint32_t rest = (uint32_t)value & 0x7fffU;
    uint32_t small = sw_bits_of_float((float)(int32_t)rest * 0x1p-24F); /* a subnormal: so many 2^-24 */
    uint32_t normal = (rest << 13) + (112U << 23);                      /* the biases are 15 and 127 */
    uint32_t special = rest << 13 | 0x7f800000U;                        /* infinity, NaN */
    uint32_t number = sw_choose_bits(rest < 0x400U, small, normal);

    return sw_float_of_bits(sign | sw_choose_bits(rest < 0x7c00U, number, special));
}

static inline uint16_t sw_f16_of_float(float value)
{
    uint32_t bits = sw_bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;
    /* Added to 0.5, whose last bit is 2^-24, a number is rounded to a whole count of these: F16's subnormal.
     */
    uint32_t small = sw_bits_of_float(sw_float_of_bits(rest) + 0.5F) - sw_bits_of_float(0.5F);
    uint32_t normal = (rest - (112U << 23) + 0xfffU + (rest >> 13 & 1U)) >> 13;
    uint32_t special = sw_choose_bits(rest > 0x7f800000U, 0x7e00U, 0x7c00U);
    uint32_t number =
        sw_choose_bits(rest < 0x38800000U, small, normal); /* 2^-14 is the smallest normal one */

    /* 65520 is half way between the largest and the next. */
    return (uint16_t)(sign | sw_choose_bits(rest < 0x477ff000U, number, special));
}

#endif
