/* The loops for AVX2 with FMA and F16C: 8 floats at a time. */
#if defined(__x86_64__)

#include <math.h>
#include <string.h>

#include "kernel/attention_tile.h"
#include "kernel/convert.h"
#include "kernel/elementwise.h"
#include "kernel/loops.h"
#include "kernel/loss.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/product_paths.h"
#include "kernel/rotary.h"
#include "kernel/rows.h"
#include "kernel/softmax.h"
#include "kernel/vector_table.h"

#define SW_VECTOR 8
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#include "kernel/vector.h"
#include "kernel/vector_math.h"
#include "kernel/vector_rows.h"

#include "kernel/vector_attention.h"
#include "kernel/vector_elementwise.h"
#include "kernel/vector_norm.h"
#include "kernel/vector_product.h"
#include "kernel/vector_train.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

sw_block_fn *const sw_loops_avx2[SW_LOOP_COUNT_] = {VECTOR_ROWS};

#else
typedef int sw_no_avx2; /* a translation unit is not empty */
#endif
