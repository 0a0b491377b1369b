/* The reference loops for F32, and the conversions, which have no other type. */
#include "base/short_float.h"
#include "kernel/loops.h"

#include <string.h>

#include "kernel/attention_merge.h"
#include "kernel/attention_tile.h"
#include "kernel/convert.h"
#include "kernel/loss.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/product_paths.h"
#include "kernel/reference_math.h"
#include "kernel/reference_table.h"
#include "kernel/rotary.h"
#include "kernel/rows.h"
#include "kernel/softmax.h"

#define REAL float
#include "kernel/reference_attention.h"
#include "kernel/reference_elementwise.h"
#include "kernel/reference_norm.h"
#include "kernel/reference_product.h"
#include "kernel/reference_train.h"

static void to_bf16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args *a = args;

    for (size_t i = begin; i < end; i++)
        ((uint16_t *)a->to)[i] = sw_bf16_of_float(((const float *)a->from)[i]);
}

static void from_bf16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args *a = args;

    for (size_t i = begin; i < end; i++)
        ((float *)a->to)[i] = sw_float_of_bf16(((const uint16_t *)a->from)[i]);
}

static void to_f16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args *a = args;

    for (size_t i = begin; i < end; i++)
        ((uint16_t *)a->to)[i] = sw_f16_of_float(((const float *)a->from)[i]);
}

static void from_f16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args *a = args;

    for (size_t i = begin; i < end; i++)
        ((float *)a->to)[i] = sw_float_of_f16(((const uint16_t *)a->from)[i]);
}

// clang-format off
sw_block_fn *const sw_loops_reference_f32[SW_LOOP_COUNT_] = {
    [SW_LOOP_TO_BF16]   = to_bf16,
    [SW_LOOP_FROM_BF16] = from_bf16,
    [SW_LOOP_TO_F16]    = to_f16,
    [SW_LOOP_FROM_F16]  = from_f16,
    REFERENCE_ROWS,
};
// clang-format on
