/* Elements as text (io/element.h). Little-endian, as the safetensors format has them. */
#include "io/element.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double of_f32(uint32_t bits)
{
    float value = 0;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double of_f64(uint64_t bits)
{
    double value = 0;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Half precision: 5 bits of exponent, 10 of mantissa. */
static double of_f16(uint32_t bits)
{
    uint32_t sign = (bits & 0x8000U) << 16;
    uint32_t exponent = bits >> 10 & 0x1fU;
    uint32_t mantissa = bits & 0x3ffU;

    if (exponent == 0) {
        double value = (double)mantissa / 16777216.0; /* 2^-24 each */
        return sign != 0 ? -value : value;
    }
    uint32_t widened = exponent == 0x1fU ? 0xffU : exponent + 112; /* the biases are 15 and 127 */
    return of_f32(sign | widened << 23 | mantissa << 13);
}

/* The sign of a number of `n_bytes` bytes carried to 64 bits. */
static int64_t widen(uint64_t bits, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes >= 8)
        return (int64_t)bits;

    uint64_t sign = (uint64_t)1 << (8 * n_bytes - 1);

    return (int64_t)((bits ^ sign) - sign);
}

const char *sw_element_text(char text[SW_ELEMENT_TEXT], sw_dtype dtype, const uint8_t *bytes, size_t n_bytes)
{
    uint64_t bits = 0;

    for (size_t i = n_bytes < 8 ? n_bytes : 8; i-- > 0;)
        bits = bits << 8 | bytes[i];
    int n = snprintf(text, SW_ELEMENT_TEXT, "0x%0*" PRIx64, (int)(2 * n_bytes), bits);
    size_t room = SW_ELEMENT_TEXT - (size_t)n;
    char *end = text + n;

    switch (dtype) {
    case SW_DTYPE_F64:
        (void)snprintf(end, room, " (%.17g)", of_f64(bits));
        break;
    case SW_DTYPE_F32:
        (void)snprintf(end, room, " (%.9g)", of_f32((uint32_t)bits));
        break;
    case SW_DTYPE_F16:
        (void)snprintf(end, room, " (%.5g)", of_f16((uint32_t)bits));
        break;
    case SW_DTYPE_BF16:
        (void)snprintf(end, room, " (%.4g)", of_f32((uint32_t)bits << 16));
        break;
    case SW_DTYPE_I64:
    case SW_DTYPE_I32:
    case SW_DTYPE_I16:
    case SW_DTYPE_I8:
        (void)snprintf(end, room, " (%" PRId64 ")", widen(bits, n_bytes));
        break;
    case SW_DTYPE_U64:
    case SW_DTYPE_U32:
    case SW_DTYPE_U16:
    case SW_DTYPE_U8:
        (void)snprintf(end, room, " (%" PRIu64 ")", bits);
        break;
    default:
        break;
    }
    return text;
}
