/* The rows of a vector table, for avx2.c and avx512.c. */
// clang-format off
#define VECTOR_ROWS \
    [SW_LOOP_TO_BF16]        = to_bf16,        \
    [SW_LOOP_FROM_BF16]      = from_bf16,      \
    [SW_LOOP_TO_F16]         = to_f16,         \
    [SW_LOOP_FROM_F16]       = from_f16,       \
    [SW_LOOP_ADD]            = add,            \
    [SW_LOOP_MULTIPLY]       = multiply,       \
    [SW_LOOP_SCALE]          = scale,          \
    [SW_LOOP_ACCUMULATE]     = accumulate,     \
    [SW_LOOP_SOFT_CAP]       = soft_cap,       \
    [SW_LOOP_SOFT_CAP_BACK]  = soft_cap_back,  \
    [SW_LOOP_CLAMP]          = clamp,          \
    [SW_LOOP_CLAMP_BACK]     = clamp_back,     \
    [SW_LOOP_ACTIVATE]       = activate,       \
    [SW_LOOP_ACTIVATE_BACK]  = activate_back,  \
    [SW_LOOP_GLU]            = glu,            \
    [SW_LOOP_GLU_BACK]       = glu_back,       \
    [SW_LOOP_ADD_BIAS]       = add_bias,       \
    [SW_LOOP_COLUMN_SUM]     = column_sum,     \
    [SW_LOOP_ROW_SCALE]      = row_scale,      \
    [SW_LOOP_ROW_DOT]        = row_dot,        \
    [SW_LOOP_SQUARE_SUM]     = square_sum,     \
    [SW_LOOP_RMS_APPLY]      = rms_apply,      \
    [SW_LOOP_RMS_DOT]        = rms_dot,        \
    [SW_LOOP_RMS_BACK]       = rms_back,       \
    [SW_LOOP_RMS_WEIGHT]     = rms_weight,     \
    [SW_LOOP_LAYER_NORM]     = layer_norm,     \
    [SW_LOOP_LAYER_BACK]     = layer_back,     \
    [SW_LOOP_LAYER_WEIGHT]   = layer_weight,   \
    [SW_LOOP_SOFTMAX]        = softmax,        \
    [SW_LOOP_SOFTMAX_BACK]   = softmax_back,   \
    [SW_LOOP_ROW_MAX]        = row_max,        \
    [SW_LOOP_ROW_EXP_SUM]    = row_exp_sum,    \
    [SW_LOOP_ROTARY]         = rotary,         \
    [SW_LOOP_TILE]           = tile,           \
    [SW_LOOP_ROW_PRODUCT]    = row_product,    \
    [SW_LOOP_ROW_PRODUCT_BF16] = row_product_bf16, \
    [SW_LOOP_ROW_PRODUCT_IN_OUT] = row_product_in_out, \
    [SW_LOOP_SCORE]          = score,          \
    [SW_LOOP_SCORE_END]      = score_end,      \
    [SW_LOOP_SCORE_BACK]     = score_back, \
    [SW_LOOP_CROSS_ENTROPY_BACK] = cross_entropy_back, \
    [SW_LOOP_GATHER] = gather, \
    [SW_LOOP_SCATTER_ADD] = scatter_add, \
    [SW_LOOP_ADAMW] = adamw
// clang-format on
