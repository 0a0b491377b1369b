/* The functions in the rows of the table (operations.c), by the file that they stand in. */
#ifndef SW_TENSOR_ROWS_OF_TABLE_H
#define SW_TENSOR_ROWS_OF_TABLE_H

#include "tensor/operation.h"

/* op_linear.c */
sw_forward_fn sw_linear_forward, sw_linear_in_out_forward;
sw_backward_fn sw_linear_backward, sw_linear_in_out_backward;

/* op_expert.c */
sw_forward_fn sw_expert_linear_forward, sw_expert_linear_in_out_forward;
sw_backward_fn sw_expert_linear_backward, sw_expert_linear_in_out_backward;

/* op_elementwise.c */
sw_forward_fn sw_add_forward, sw_add_bias_forward, sw_multiply_forward, sw_row_scale_forward;
sw_forward_fn sw_clamp_forward, sw_scale_forward, sw_activate_forward, sw_glu_forward, sw_soft_cap_forward;
sw_backward_fn sw_add_backward, sw_add_bias_backward, sw_multiply_backward, sw_row_scale_backward;
sw_backward_fn sw_clamp_backward, sw_scale_backward, sw_activate_backward, sw_glu_backward,
    sw_soft_cap_backward;

/* op_norm.c */
sw_forward_fn sw_softmax_forward, sw_normalise_forward, sw_rms_norm_forward, sw_layer_norm_forward;
sw_backward_fn sw_softmax_backward, sw_normalise_backward, sw_rms_norm_backward, sw_layer_norm_backward;
sw_forward_fn sw_rope_forward;
sw_backward_fn sw_rope_backward;

/* op_norm_parts.c */
sw_forward_fn sw_square_sums_forward, sw_rms_by_sums_forward;
sw_backward_fn sw_square_sums_backward, sw_rms_by_sums_backward;

/* op_attention.c */
sw_forward_fn sw_attention_forward;
sw_backward_fn sw_attention_backward;

/* op_rows.c */
sw_forward_fn sw_embedding_forward, sw_gather_rows_forward, sw_scatter_rows_forward, sw_top_k_forward;
sw_backward_fn sw_embedding_backward, sw_gather_rows_backward, sw_scatter_rows_backward, sw_top_k_backward;

/* op_reduce.c */
sw_forward_fn sw_cross_entropy_forward, sw_sum_forward, sw_concat_forward, sw_append_forward;
sw_forward_fn sw_copy_forward;
sw_backward_fn sw_cross_entropy_backward, sw_sum_backward, sw_concat_backward, sw_append_backward;
sw_backward_fn sw_copy_backward;

/* custom.c */
sw_backward_fn sw_custom_backward;

#endif
