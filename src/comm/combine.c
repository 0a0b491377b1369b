/*
 * Combinations (comm/combine.h), a block at a time: the block is read from the first part, the others are
 * added or compared, then it is written. Blocks stay in the first cache, and the loops are plain enough to
 * become vector code.
 */
#include "comm/combine.h"

#include <string.h>

#include "base/status.h"

enum { BLOCK = 1024 };

/* ---- short floats, from and to F32 in integer arithmetic ---- */

static inline uint32_t bits_of(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float from_bf16(uint16_t value)
{
    return float_of((uint32_t)value << 16);
}

/* To the nearest, ties to even; NaN stays NaN. */
static inline uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40U;
    return (uint16_t)((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

static inline float from_f16(uint16_t value)
{
    /* The exponent moves from a bias of 15 to one of 127 by a product, which subnormals survive. */
    uint32_t sign = ((uint32_t)value & 0x8000U) << 16;
    uint32_t rest = ((uint32_t)value & 0x7fffU) << 13;
    float magnitude = float_of(rest) * 0x1p112F;
    uint32_t special = rest | 0x7f800000U; /* infinity and NaN */
    return float_of(sign | (rest >= 0x0f800000U ? special : bits_of(magnitude)));
}

static inline uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;

    if (rest > 0x7f800000U)
        return (uint16_t)(sign | 0x7e00U);
    if (rest >= 0x477ff000U) /* 65520, half way from the largest to the next */
        return (uint16_t)(sign | 0x7c00U);
    if (rest <
        0x38800000U) { /* subnormal: the adder rounds to multiples of 2^-24, whose count are the bits */
        float sum = float_of(rest) + 0.5F;
        return (uint16_t)(sign | (bits_of(sum) - bits_of(0.5F)));
    }
    return (uint16_t)(sign | ((rest - 0x38000000U + 0xfffU + (rest >> 13 & 1U)) >> 13));
}

/* ---- one element with another ---- */

#define SUM(a, b)       ((a) + (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))
#define FLOAT_MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

// NOLINTBEGIN(bugprone-macro-parentheses): types stand in declarations
/* Parts of a type that is combined in itself, or in a wider one that `load` and `store` lead to and from. */
#define COMBINE(name, type, wide, load, store, op)                                                           \
    static void name(void *out, const void *const *parts, uint32_t n_parts, size_t n)                        \
    {                                                                                                        \
        wide block[BLOCK];                                                                                   \
        for (size_t at = 0; at < n; at += BLOCK) {                                                           \
            size_t length = n - at < BLOCK ? n - at : BLOCK;                                                 \
            const type *first = (const type *)parts[0] + at;                                                 \
            for (size_t i = 0; i < length; i++)                                                              \
                block[i] = load(first[i]);                                                                   \
            for (uint32_t p = 1; p < n_parts; p++) {                                                         \
                const type *next = (const type *)parts[p] + at;                                              \
                for (size_t i = 0; i < length; i++)                                                          \
                    block[i] = (wide)op(block[i], load(next[i]));                                            \
            }                                                                                                \
            type *result = (type *)out + at;                                                                 \
            for (size_t i = 0; i < length; i++)                                                              \
                result[i] = store(block[i]);                                                                 \
        }                                                                                                    \
    }

// NOLINTEND(bugprone-macro-parentheses)
#define SAME(value) (value)

// clang-format off
/*      name       type      in        load       store    op */
COMBINE(sum_f64,   double,   double,   SAME,      SAME,    SUM)
COMBINE(sum_f32,   float,    float,    SAME,      SAME,    SUM)
COMBINE(sum_f16,   uint16_t, float,    from_f16,  to_f16,  SUM)
COMBINE(sum_bf16,  uint16_t, float,    from_bf16, to_bf16, SUM)
COMBINE(sum_64,    uint64_t, uint64_t, SAME,      SAME,    SUM)
COMBINE(sum_32,    uint32_t, uint32_t, SAME,      SAME,    SUM)
COMBINE(sum_16,    uint16_t, uint16_t, SAME,      SAME,    SUM)
COMBINE(sum_8,     uint8_t,  uint8_t,  SAME,      SAME,    SUM)
COMBINE(max_f64,   double,   double,   SAME,      SAME,    FLOAT_MAX)
COMBINE(max_f32,   float,    float,    SAME,      SAME,    FLOAT_MAX)
COMBINE(max_f16,   uint16_t, float,    from_f16,  to_f16,  FLOAT_MAX)
COMBINE(max_bf16,  uint16_t, float,    from_bf16, to_bf16, FLOAT_MAX)
COMBINE(max_i64,   int64_t,  int64_t,  SAME,      SAME,    MAX)
COMBINE(max_i32,   int32_t,  int32_t,  SAME,      SAME,    MAX)
COMBINE(max_i16,   int16_t,  int16_t,  SAME,      SAME,    MAX)
COMBINE(max_i8,    int8_t,   int8_t,   SAME,      SAME,    MAX)
COMBINE(max_u64,   uint64_t, uint64_t, SAME,      SAME,    MAX)
COMBINE(max_u32,   uint32_t, uint32_t, SAME,      SAME,    MAX)
COMBINE(max_u16,   uint16_t, uint16_t, SAME,      SAME,    MAX)
COMBINE(max_u8,    uint8_t,  uint8_t,  SAME,      SAME,    MAX)

typedef void combine_fn(void *out, const void *const *parts, uint32_t n_parts, size_t n);

static combine_fn *const combiners[SW_DTYPE_COUNT_][SW_COMBINE_OP_COUNT_] = {
    /*                sum        max      */
    [SW_DTYPE_F64]  = { sum_f64,  max_f64  },
    [SW_DTYPE_F32]  = { sum_f32,  max_f32  },
    [SW_DTYPE_F16]  = { sum_f16,  max_f16  },
    [SW_DTYPE_BF16] = { sum_bf16, max_bf16 },
    [SW_DTYPE_I64]  = { sum_64,   max_i64  },
    [SW_DTYPE_I32]  = { sum_32,   max_i32  },
    [SW_DTYPE_I16]  = { sum_16,   max_i16  },
    [SW_DTYPE_I8]   = { sum_8,    max_i8   },
    [SW_DTYPE_U64]  = { sum_64,   max_u64  },
    [SW_DTYPE_U32]  = { sum_32,   max_u32  },
    [SW_DTYPE_U16]  = { sum_16,   max_u16  },
    [SW_DTYPE_U8]   = { sum_8,    max_u8   },
    [SW_DTYPE_BOOL] = { NULL,     max_u8   },
};
// clang-format on

bool sw_can_combine(sw_dtype dtype, sw_combine_op op)
{
    return (unsigned)dtype < SW_DTYPE_COUNT_ && (unsigned)op < SW_COMBINE_OP_COUNT_ &&
           combiners[dtype][op] != NULL;
}

void sw_combine(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                sw_combine_op op)
{
    combiners[dtype][op](out, parts, n_parts, n);
}
