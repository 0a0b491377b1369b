/*
 * Combinations (comm/combine.h), a block at a time: what was added or compared so far stays in the first
 * cache, and the last part's goes straight to the result. The loops are plain enough to become vector code,
 * also at -O2, where gcc wants lengths that it knows.
 */
#include "comm/combine.h"

#include "base/short_float.h"

enum { BLOCK = 1024 };

/* The result may be one of the parts, at the same place: no element depends on another one. */
#ifdef __clang__
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

/* ---- one element with another ---- */

#ifdef __x86_64__
#define WITH_AVX2 __attribute__((target("avx2")))
#define HAS_AVX2  __builtin_cpu_supports("avx2")
#else
#define WITH_AVX2
#define HAS_AVX2 0
#endif

#define SUM(a, b)       ((a) + (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))
#define FLOAT_MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

// NOLINTBEGIN(bugprone-macro-parentheses): types stand in declarations
/*
 * Parts of a type that is combined in itself, or in a wider one that `load` and `store` lead to and from. The
 * loop is built for any processor and for AVX2. Full blocks have a length that the compiler knows.
 */
#define COMBINE(name, type, result_type, wide, load, store, op)                                              \
    static inline __attribute__((always_inline)) void name##_block(                                          \
        void *out, const void *const *parts, uint32_t n_parts, size_t at, size_t length)                     \
    {                                                                                                        \
        const type *first = (const type *)parts[0] + at;                                                     \
        const type *second = (const type *)parts[n_parts > 1 ? 1 : 0] + at;                                  \
        result_type *result = (result_type *)out + at;                                                       \
        wide block[BLOCK];                                                                                   \
        if (n_parts <= 1) {                                                                                  \
            EACH_BY_ITSELF                                                                                   \
            for (size_t i = 0; i < length; i++)                                                              \
                result[i] = store(load(first[i]));                                                           \
            return;                                                                                          \
        }                                                                                                    \
        if (n_parts == 2) {                                                                                  \
            EACH_BY_ITSELF                                                                                   \
            for (size_t i = 0; i < length; i++)                                                              \
                result[i] = store((wide)op(load(first[i]), load(second[i])));                                \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t i = 0; i < length; i++)                                                                  \
            block[i] = (wide)op(load(first[i]), load(second[i]));                                            \
        for (uint32_t p = 2; p + 1 < n_parts; p++) {                                                         \
            const type *next = (const type *)parts[p] + at;                                                  \
            for (size_t i = 0; i < length; i++)                                                              \
                block[i] = (wide)op(block[i], load(next[i]));                                                \
        }                                                                                                    \
        const type *last = (const type *)parts[n_parts - 1] + at;                                            \
        EACH_BY_ITSELF                                                                                       \
        for (size_t i = 0; i < length; i++)                                                                  \
            result[i] = store((wide)op(block[i], load(last[i])));                                            \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void name##_blocks(void *out, const void *const *parts,     \
                                                                    uint32_t n_parts, size_t n)              \
    {                                                                                                        \
        size_t full = n - n % BLOCK;                                                                         \
        for (size_t at = 0; at < full; at += BLOCK)                                                          \
            name##_block(out, parts, n_parts, at, BLOCK);                                                    \
        if (full < n)                                                                                        \
            name##_block(out, parts, n_parts, full, n - full);                                               \
    }                                                                                                        \
    static void name(void *out, const void *const *parts, uint32_t n_parts, size_t n)                        \
    {                                                                                                        \
        name##_blocks(out, parts, n_parts, n);                                                               \
    }                                                                                                        \
    WITH_AVX2 static void name##_avx2(void *out, const void *const *parts, uint32_t n_parts, size_t n)       \
    {                                                                                                        \
        name##_blocks(out, parts, n_parts, n);                                                               \
    }

// NOLINTEND(bugprone-macro-parentheses)
#define SAME(value) (value)

// clang-format off
#define BOTH(name) { { name, name##_avx2 } }
#define NONE       { { NULL, NULL } }

/*      name          type      to        in        load              store             op */
COMBINE(sum_f64,      double,   double,   double,   SAME,             SAME,             SUM)
COMBINE(sum_f32,      float,    float,    float,    SAME,             SAME,             SUM)
COMBINE(sum_f16,      uint16_t, uint16_t, float,    sw_float_of_f16,  sw_f16_of_float,  SUM)
COMBINE(sum_bf16,     uint16_t, uint16_t, float,    sw_float_of_bf16, sw_bf16_of_float, SUM)
COMBINE(sum_64,       uint64_t, uint64_t, uint64_t, SAME,             SAME,             SUM)
COMBINE(sum_32,       uint32_t, uint32_t, uint32_t, SAME,             SAME,             SUM)
COMBINE(sum_16,       uint16_t, uint16_t, uint16_t, SAME,             SAME,             SUM)
COMBINE(sum_8,        uint8_t,  uint8_t,  uint8_t,  SAME,             SAME,             SUM)
COMBINE(begin_f16,    uint16_t, float,    float,    sw_float_of_f16,  SAME,             SUM)
COMBINE(begin_bf16,   uint16_t, float,    float,    sw_float_of_bf16, SAME,             SUM)
COMBINE(end_f16,      float,    uint16_t, float,    SAME,             sw_f16_of_float,  SUM)
COMBINE(end_bf16,     float,    uint16_t, float,    SAME,             sw_bf16_of_float, SUM)
COMBINE(max_f64,      double,   double,   double,   SAME,             SAME,             FLOAT_MAX)
COMBINE(max_f32,      float,    float,    float,    SAME,             SAME,             FLOAT_MAX)
COMBINE(max_f16,      uint16_t, uint16_t, float,    sw_float_of_f16,  sw_f16_of_float,  FLOAT_MAX)
COMBINE(max_bf16,     uint16_t, uint16_t, float,    sw_float_of_bf16, sw_bf16_of_float, FLOAT_MAX)
COMBINE(max_i64,      int64_t,  int64_t,  int64_t,  SAME,             SAME,             MAX)
COMBINE(max_i32,      int32_t,  int32_t,  int32_t,  SAME,             SAME,             MAX)
COMBINE(max_i16,      int16_t,  int16_t,  int16_t,  SAME,             SAME,             MAX)
COMBINE(max_i8,       int8_t,   int8_t,   int8_t,   SAME,             SAME,             MAX)
COMBINE(max_u64,      uint64_t, uint64_t, uint64_t, SAME,             SAME,             MAX)
COMBINE(max_u32,      uint32_t, uint32_t, uint32_t, SAME,             SAME,             MAX)
COMBINE(max_u16,      uint16_t, uint16_t, uint16_t, SAME,             SAME,             MAX)
COMBINE(max_u8,       uint8_t,  uint8_t,  uint8_t,  SAME,             SAME,             MAX)

/* For any processor, and for AVX2. */
typedef struct combiner {
    void (*run[2])(void *out, const void *const *parts, uint32_t n_parts, size_t n);
} combiner;

static const combiner combiners[SW_DTYPE_COUNT_][SW_COMBINE_OP_COUNT_] = {
    /*                sum              max */
    [SW_DTYPE_F64]  = { BOTH(sum_f64),   BOTH(max_f64)  },
    [SW_DTYPE_F32]  = { BOTH(sum_f32),   BOTH(max_f32)  },
    [SW_DTYPE_F16]  = { BOTH(sum_f16),   BOTH(max_f16)  },
    [SW_DTYPE_BF16] = { BOTH(sum_bf16),  BOTH(max_bf16) },
    [SW_DTYPE_I64]  = { BOTH(sum_64),    BOTH(max_i64)  },
    [SW_DTYPE_I32]  = { BOTH(sum_32),    BOTH(max_i32)  },
    [SW_DTYPE_I16]  = { BOTH(sum_16),    BOTH(max_i16)  },
    [SW_DTYPE_I8]   = { BOTH(sum_8),     BOTH(max_i8)   },
    [SW_DTYPE_U64]  = { BOTH(sum_64),    BOTH(max_u64)  },
    [SW_DTYPE_U32]  = { BOTH(sum_32),    BOTH(max_u32)  },
    [SW_DTYPE_U16]  = { BOTH(sum_16),    BOTH(max_u16)  },
    [SW_DTYPE_U8]   = { BOTH(sum_8),     BOTH(max_u8)   },
    [SW_DTYPE_BOOL] = { NONE,            BOTH(max_u8)   },
};
/* In two goes, where that is something else. */
static const combiner begins[SW_DTYPE_COUNT_] = {
    [SW_DTYPE_F16] = BOTH(begin_f16), [SW_DTYPE_BF16] = BOTH(begin_bf16) };
static const combiner ends[SW_DTYPE_COUNT_] = {
    [SW_DTYPE_F16] = BOTH(end_f16), [SW_DTYPE_BF16] = BOTH(end_bf16) };
// clang-format on

bool sw_can_combine(sw_dtype dtype, sw_combine_op op)
{
    return (unsigned)dtype < SW_DTYPE_COUNT_ && (unsigned)op < SW_COMBINE_OP_COUNT_ &&
           combiners[dtype][op].run[0] != NULL;
}

void sw_combine(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                sw_combine_op op)
{
    combiners[dtype][op].run[HAS_AVX2 ? 1 : 0](out, parts, n_parts, n);
}

/* Is a combination of F32 on the way? */
static bool widens(sw_dtype dtype, sw_combine_op op)
{
    return op == SW_COMBINE_SUM && begins[dtype].run[0] != NULL;
}

uint32_t sw_combine_width(sw_dtype dtype, sw_combine_op op)
{
    return widens(dtype, op) ? (uint32_t)sizeof(float) : sw_dtype_bits(dtype) / 8;
}

void sw_combine_begin(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                      sw_combine_op op)
{
    const combiner *c = widens(dtype, op) ? &begins[dtype] : &combiners[dtype][op];
    c->run[HAS_AVX2 ? 1 : 0](out, parts, n_parts, n);
}

void sw_combine_end(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                    sw_combine_op op)
{
    const combiner *c = widens(dtype, op) ? &ends[dtype] : &combiners[dtype][op];
    c->run[HAS_AVX2 ? 1 : 0](out, parts, n_parts, n);
}
