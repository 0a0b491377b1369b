/*
 * Combinations (comm/combine.h), a block at a time: the block is read from the first part, the others are
 * added or compared, then it is written. Blocks stay in the first cache, and the loops are plain enough to
 * become vector code.
 */
#include "comm/combine.h"

#include "base/short_float.h"

enum { BLOCK = 1024 };

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
/*      name       type      in        load              store             op */
COMBINE(sum_f64,   double,   double,   SAME,             SAME,             SUM)
COMBINE(sum_f32,   float,    float,    SAME,             SAME,             SUM)
COMBINE(sum_f16,   uint16_t, float,    sw_float_of_f16,  sw_f16_of_float,  SUM)
COMBINE(sum_bf16,  uint16_t, float,    sw_float_of_bf16, sw_bf16_of_float, SUM)
COMBINE(sum_64,    uint64_t, uint64_t, SAME,             SAME,             SUM)
COMBINE(sum_32,    uint32_t, uint32_t, SAME,             SAME,             SUM)
COMBINE(sum_16,    uint16_t, uint16_t, SAME,             SAME,             SUM)
COMBINE(sum_8,     uint8_t,  uint8_t,  SAME,             SAME,             SUM)
COMBINE(max_f64,   double,   double,   SAME,             SAME,             FLOAT_MAX)
COMBINE(max_f32,   float,    float,    SAME,             SAME,             FLOAT_MAX)
COMBINE(max_f16,   uint16_t, float,    sw_float_of_f16,  sw_f16_of_float,  FLOAT_MAX)
COMBINE(max_bf16,  uint16_t, float,    sw_float_of_bf16, sw_bf16_of_float, FLOAT_MAX)
COMBINE(max_i64,   int64_t,  int64_t,  SAME,             SAME,             MAX)
COMBINE(max_i32,   int32_t,  int32_t,  SAME,             SAME,             MAX)
COMBINE(max_i16,   int16_t,  int16_t,  SAME,             SAME,             MAX)
COMBINE(max_i8,    int8_t,   int8_t,   SAME,             SAME,             MAX)
COMBINE(max_u64,   uint64_t, uint64_t, SAME,             SAME,             MAX)
COMBINE(max_u32,   uint32_t, uint32_t, SAME,             SAME,             MAX)
COMBINE(max_u16,   uint16_t, uint16_t, SAME,             SAME,             MAX)
COMBINE(max_u8,    uint8_t,  uint8_t,  SAME,             SAME,             MAX)

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
