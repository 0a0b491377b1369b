/* The reference loops for F64. */
#include "base/short_float.h"
#include "kernel/loops.h"

#include <string.h>

#include "kernel/attention_merge.h"
#include "kernel/attention_tile.h"
#include "kernel/loss.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/product_paths.h"
#include "kernel/reference_math.h"
#include "kernel/reference_table.h"
#include "kernel/rotary.h"
#include "kernel/rows.h"
#include "kernel/softmax.h"

#define REAL double
#include "kernel/reference_attention.h"
#include "kernel/reference_elementwise.h"
#include "kernel/reference_norm.h"
#include "kernel/reference_product.h"
#include "kernel/reference_train.h"

sw_block_fn *const sw_loops_reference_f64[SW_LOOP_COUNT_] = {REFERENCE_ROWS};
