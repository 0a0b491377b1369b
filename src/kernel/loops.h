/*
 * The one table of loops: for each of them and each variant, the function that does a block of it.
 *
 * A block function reads its arguments (the struct of the kernel's header) and does the items begin .. end-1,
 * where the kernel says what an item is: an element, a row, a column. Block functions know nothing of
 * threads; sw_kernel_run() hands blocks out. A vector variant leaves out what gains nothing: the next
 * narrower one stands in, or the reference, which has all.
 */
#ifndef SW_KERNEL_LOOPS_H
#define SW_KERNEL_LOOPS_H

#include "kernel/kernel.h"

typedef void sw_block_fn(const void *args, size_t begin, size_t end);

typedef enum sw_loop {
    SW_LOOP_TO_BF16, /* convert.h, items: elements */
    SW_LOOP_FROM_BF16,
    SW_LOOP_TO_F16,
    SW_LOOP_FROM_F16,
    SW_LOOP_ADD, /* elementwise.h, items: elements */
    SW_LOOP_MULTIPLY,
    SW_LOOP_SCALE,
    SW_LOOP_ACCUMULATE,
    SW_LOOP_SOFT_CAP,
    SW_LOOP_SOFT_CAP_BACK,
    SW_LOOP_CLAMP,
    SW_LOOP_CLAMP_BACK,
    SW_LOOP_ACTIVATE,
    SW_LOOP_ACTIVATE_BACK,
    SW_LOOP_GLU, /* rows */
    SW_LOOP_GLU_BACK,
    SW_LOOP_ADD_BIAS,
    SW_LOOP_COLUMN_SUM, /* columns */
    SW_LOOP_ROW_SCALE,  /* rows */
    SW_LOOP_ROW_DOT,
    SW_LOOP_SQUARE_SUM, /* norm.h, items: rows */
    SW_LOOP_RMS_APPLY,
    SW_LOOP_RMS_DOT,
    SW_LOOP_RMS_BACK,
    SW_LOOP_RMS_WEIGHT, /* columns */
    SW_LOOP_LAYER_NORM, /* rows */
    SW_LOOP_LAYER_BACK,
    SW_LOOP_LAYER_WEIGHT, /* columns */
    SW_LOOP_SOFTMAX,      /* softmax.h, items: rows */
    SW_LOOP_SOFTMAX_BACK,
    SW_LOOP_ROW_MAX,
    SW_LOOP_ROW_EXP_SUM,
    SW_LOOP_NORMALISE,
    SW_LOOP_NORMALISE_BACK,
    SW_LOOP_ROTARY,      /* rotary.h, items: tokens */
    SW_LOOP_TILE,        /* product_paths.h, items: rows of C */
    SW_LOOP_ROW_PRODUCT, /* product_paths.h, items: columns of C */
    SW_LOOP_ROW_PRODUCT_BF16,
    SW_LOOP_ROW_PRODUCT_IN_OUT,
    SW_LOOP_SCORE, /* attention_tile.h, items: rows of a tile */
    SW_LOOP_SCORE_END,
    SW_LOOP_SCORE_JOIN,
    SW_LOOP_SCORE_BACK,
    SW_LOOP_MERGE_PARTS, /* attention_merge.h, items: a head of a token */
    SW_LOOP_MERGE_SINKS,
    SW_LOOP_TARGET_LOGIT, /* loss.h, items: rows */
    SW_LOOP_CROSS_ENTROPY_BACK,
    SW_LOOP_GATHER,      /* rows.h, items: rows */
    SW_LOOP_SCATTER_ADD, /* columns */
    SW_LOOP_TOP_K,       /* rows */
    SW_LOOP_ADAMW,       /* optimizer.h, items: elements */
    SW_LOOP_SGD,
    SW_LOOP_COUNT_,
} sw_loop;

/* F32 by variant; F64 is the reference, built for that type. */
extern sw_block_fn *const sw_loops_reference_f32[SW_LOOP_COUNT_];
extern sw_block_fn *const sw_loops_reference_f64[SW_LOOP_COUNT_];
extern sw_block_fn *const sw_loops_avx2[SW_LOOP_COUNT_];
extern sw_block_fn *const sw_loops_avx512[SW_LOOP_COUNT_];

sw_block_fn *sw_kernel_loop(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop);

/* Blocks of `grain` items (at least 1), the same share of neighbouring blocks to each thread. */
void sw_kernel_run(const sw_kernel *kernel, sw_block_fn *block, const void *args, size_t n, size_t grain);

/* The same for blocks of unequal work: a thread that is done takes the next one. */
void sw_kernel_run_uneven(const sw_kernel *kernel, sw_block_fn *block, const void *args, size_t n,
                          size_t grain);

/* What OpenMP itself starts from here on, the library's loops for one, has the context's threads. */
void sw_kernel_use_threads(const sw_kernel *kernel);

/* Which thread of the running loop this is, below sw_kernel_threads(): picks its part of a workspace. */
size_t sw_kernel_thread_index(void);

/* Items of a block when one item is `width` elements: 16,384 elements or one item. */
static inline size_t sw_kernel_grain(size_t width)
{
    enum { BLOCK = 16384 };
    return width == 0 || width >= BLOCK ? 1 : BLOCK / width;
}

/*
 * Columns of a block that goes down rows of n: each thread's share, for memory is read fastest in long
 * stretches; few enough for a row of sums to stay in the innermost cache. For loops whose columns do not
 * depend on each other, so that the blocks do not show in the result.
 */
size_t sw_kernel_column_grain(const sw_kernel *kernel, size_t n);

/* Loop `loop` over n items of `width` elements. */
void sw_kernel_do(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop, const void *args, size_t n,
                  size_t width);

#endif
