/* Numbers in arrays: see the header. Short floats are made from the bits of a float, which holds them
 * exactly. */
#include "numbers.h"

#include <math.h>
#include <string.h>

static uint32_t float_bits(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023;
    double magnitude = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31)
        magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

/* The bits of a number that F16 has, not one of its subnormals. */
static uint16_t f16_bits(double value)
{
    int exponent = 0;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 up to 1 */
    int mantissa = (int)ldexp(fraction, 11) - 1024;
    int bits = fraction == 0 ? 0 : (exponent + 14) << 10 | mantissa;

    return (uint16_t)(bits | (value < 0 ? 0x8000 : 0));
}

#define PUT(type)                                                                                            \
    do {                                                                                                     \
        ((type *)array)[i] = (type)value;                                                                    \
    } while (0)

void number_put(void *array, size_t i, sw_dtype dtype, double value)
{
    switch (dtype) {
    case SW_DTYPE_F64:
        PUT(double);
        break;
    case SW_DTYPE_F32:
        PUT(float);
        break;
    case SW_DTYPE_F16:
        ((uint16_t *)array)[i] = f16_bits(value);
        break;
    case SW_DTYPE_BF16:
        ((uint16_t *)array)[i] = (uint16_t)(float_bits((float)value) >> 16);
        break;
    case SW_DTYPE_I64:
        PUT(int64_t);
        break;
    case SW_DTYPE_I32:
        PUT(int32_t);
        break;
    case SW_DTYPE_I16:
        PUT(int16_t);
        break;
    case SW_DTYPE_I8:
        PUT(int8_t);
        break;
    case SW_DTYPE_U64:
        PUT(uint64_t);
        break;
    case SW_DTYPE_U32:
        PUT(uint32_t);
        break;
    case SW_DTYPE_U16:
        PUT(uint16_t);
        break;
    default:
        PUT(uint8_t);
        break;
    }
}

#define GET(type) (double)((const type *)array)[i]

double number_get(const void *array, size_t i, sw_dtype dtype)
{
    float value = 0;
    uint32_t bits = 0;

    switch (dtype) {
    case SW_DTYPE_F64:
        return GET(double);
    case SW_DTYPE_F32:
        return GET(float);
    case SW_DTYPE_F16:
        return f16_value(((const uint16_t *)array)[i]);
    case SW_DTYPE_BF16:
        bits = (uint32_t)((const uint16_t *)array)[i] << 16;
        memcpy(&value, &bits, sizeof value);
        return value;
    case SW_DTYPE_I64:
        return GET(int64_t);
    case SW_DTYPE_I32:
        return GET(int32_t);
    case SW_DTYPE_I16:
        return GET(int16_t);
    case SW_DTYPE_I8:
        return GET(int8_t);
    case SW_DTYPE_U64:
        return GET(uint64_t);
    case SW_DTYPE_U32:
        return GET(uint32_t);
    case SW_DTYPE_U16:
        return GET(uint16_t);
    default:
        return GET(uint8_t);
    }
}
