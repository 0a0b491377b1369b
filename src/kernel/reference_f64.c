/* The reference loops for F64. */
#include "kernel/loops.h"

#include "kernel/attention_tile.h"
#include "kernel/norm.h"
#include "kernel/product_paths.h"
#include "kernel/reference_math.h"
#include "kernel/reference_table.h"
#include "kernel/rotary.h"
#include "kernel/short_float.h"
#include "kernel/softmax.h"

#define REAL double
#include "kernel/reference_attention.h"
#include "kernel/reference_elementwise.h"
#include "kernel/reference_norm.h"
#include "kernel/reference_product.h"

sw_block_fn *const sw_loops_reference_f64[SW_LOOP_COUNT_] = {REFERENCE_ROWS};
