/*
 * The table of operations, one row each (tensor/operation.h says what a column means), and the calls, which
 * put arguments in a row's order. docs/reference/operations.md shows the same table, and a test compares.
 */
#include "tensor/operations.h"

#include "base/status.h"
#include "tensor/rows_of_table.h"
#include "tensor/step_state.h"

// clang-format off
const sw_operation sw_operations[SW_OP_COUNT_] = {
/*                           values: in -> out                                       linear in              saved           adds  */
[SW_OP_LINEAR]         = { "linear",
                           "x:*i weight~:oi bias?:o -> y:*o",                        "x+bias weight+bias",  "x weight",     "x weight bias",
                           sw_linear_forward,        sw_linear_backward },
[SW_OP_LINEAR_IN_OUT]  = { "linear_in_out",
                           "x:*i weight~:io bias?:o -> y:*o",                        "x+bias weight+bias",  "x weight",     "x weight bias",
                           sw_linear_in_out_forward, sw_linear_in_out_backward },
[SW_OP_EXPERT_LINEAR]  = { "expert_linear",
                           "x:Ni weight~:Eoi ends#:E bias?:Eo -> y:No",              "x+bias weight+bias",  "x weight ends", "x weight bias",
                           sw_expert_linear_forward, sw_expert_linear_backward },
[SW_OP_EXPERT_LINEAR_IN_OUT] = { "expert_linear_in_out",
                           "x:Ni weight~:Eio ends#:E bias?:Eo -> y:No",              "x+bias weight+bias",  "x weight ends", "x weight bias",
                           sw_expert_linear_in_out_forward, sw_expert_linear_in_out_backward },
[SW_OP_ADD]            = { "add",
                           "a:* b:* -> y:*",                                         "a+b",                 "",             "a b",
                           sw_add_forward,           sw_add_backward },
[SW_OP_ADD_BIAS]       = { "add_bias",
                           "x:*c bias:c -> y:*c",                                    "x+bias",              "",             "x bias",
                           sw_add_bias_forward,      sw_add_bias_backward },
[SW_OP_MULTIPLY]       = { "multiply",
                           "a:* b:* -> y:*",                                         "a b",                 "a b",          "",
                           sw_multiply_forward,      sw_multiply_backward },
[SW_OP_ROW_SCALE]      = { "row_scale",
                           "x:*c scale:* -> y:*c",                                   "x scale",             "x scale",      "x",
                           sw_row_scale_forward,     sw_row_scale_backward },
[SW_OP_SCALE]          = { "scale",
                           "x:* -> y:*",                                             "x",                   "",             "x",
                           sw_scale_forward,         sw_scale_backward },
[SW_OP_ACTIVATE]       = { "activate",
                           "x:* -> y:*",                                             "",                    "x",            "",
                           sw_activate_forward,      sw_activate_backward },
[SW_OP_GLU]            = { "glu",
                           "gate:*c up:*c -> y:*c",                                  "up",                  "gate up",      "",
                           sw_glu_forward,           sw_glu_backward },
[SW_OP_CLAMPED_GLU]    = { "clamped_glu",
                           "gate:*c up:*c -> y:*c",                                  "",                    "gate up",      "",
                           sw_glu_forward,           sw_glu_backward },
[SW_OP_SOFT_CAP]       = { "soft_cap",
                           "x:* -> y:*",                                             "",                    "x",            "",
                           sw_soft_cap_forward,      sw_soft_cap_backward },
[SW_OP_CLAMP]          = { "clamp",
                           "x:* -> y:*",                                             "",                    "x",            "",
                           sw_clamp_forward,         sw_clamp_backward },
[SW_OP_SOFTMAX]        = { "softmax",
                           "x:*C -> y:*C",                                           "",                    "y",            "",
                           sw_softmax_forward,       sw_softmax_backward },
[SW_OP_NORMALISE]      = { "normalise",
                           "x:*C -> y:*C sum:*",                                     "",                    "y sum",        "",
                           sw_normalise_forward,     sw_normalise_backward },
[SW_OP_RMS_NORM]       = { "rms_norm",
                           "x:*C weight?:C -> y:*C scale:*",                         "",                    "x weight scale", "weight",
                           sw_rms_norm_forward,      sw_rms_norm_backward },
[SW_OP_SQUARE_SUMS]    = { "square_sums",
                           "x:*c -> sums:*",                                         "",                    "x",            "x",
                           sw_square_sums_forward,   sw_square_sums_backward },
[SW_OP_RMS_BY_SUMS]    = { "rms_by_sums",
                           "x:*c sums:* weight?:c -> y:*c scale:*",                  "x",                   "x weight scale", "weight",
                           sw_rms_by_sums_forward,   sw_rms_by_sums_backward },
[SW_OP_LAYER_NORM]     = { "layer_norm",
                           "x:*C weight?:C bias?:C -> y:*C scale:* mean:*",          "weight+bias",         "x weight scale mean", "weight bias",
                           sw_layer_norm_forward,    sw_layer_norm_backward },
[SW_OP_ROPE]           = { "rope",
                           "x:*hD cos!:PR sin!:PR positions#:* -> y:*hD",            "x",                   "cos sin positions", "",
                           sw_rope_forward,          sw_rope_backward },
[SW_OP_ATTENTION]      = { "attention",
                           "q:bthD k:bSh'D v:bSh'e q_positions#:bt k_positions#:bS slopes!?:h sinks?:h -> y:bthe lse:bht",
                                                                                     "v",                   "q k v q_positions k_positions slopes sinks y lse", "sinks",
                           sw_attention_forward,     sw_attention_backward },
[SW_OP_EMBEDDING]      = { "embedding",
                           "ids#:* weight~:Ve -> y:*e",                              "weight",              "ids",          "weight",
                           sw_embedding_forward,     sw_embedding_backward },
[SW_OP_EMBEDDING_PART] = { "embedding_part",
                           "ids#:* weight~:ve -> y:*e",                              "weight",              "ids",          "weight",
                           sw_embedding_forward,     sw_embedding_backward },
[SW_OP_TOP_K]          = { "top_k",
                           "x:*C correction!?:C -> values:*K indices#:*K",           "",                    "indices",      "x",
                           sw_top_k_forward,         sw_top_k_backward },
[SW_OP_GATHER_ROWS]    = { "gather_rows",
                           "x:Nc ids#:r -> y:rc",                                    "x",                   "ids",          "x",
                           sw_gather_rows_forward,   sw_gather_rows_backward },
[SW_OP_SCATTER_ROWS]   = { "scatter_rows",
                           "x:rc weights?:r ids#:r -> y:Nc",                         "x weights",           "x weights ids", "",
                           sw_scatter_rows_forward,  sw_scatter_rows_backward },
[SW_OP_CROSS_ENTROPY]  = { "cross_entropy",
                           "logits:*C targets#:* -> loss: max:* sum:*",              "",                    "logits targets max sum", "",
                           sw_cross_entropy_forward, sw_cross_entropy_backward },
[SW_OP_SUM]            = { "sum",
                           "x:* -> y:",                                              "x",                   "",             "",
                           sw_sum_forward,           sw_sum_backward },
[SW_OP_CONCAT]         = { "concat",
                           "a:*A b:*B -> y:*N",                                      "a+b",                 "",             "",
                           sw_concat_forward,        sw_concat_backward },
[SW_OP_APPEND]         = { "append",
                           "a:*hA b:*B -> y:*hN",                                    "a+b",                 "",             "",
                           sw_append_forward,        sw_append_backward },
[SW_OP_COPY]           = { "copy",
                           "x:* -> y:*",                                             "x",                   "",             "x",
                           sw_copy_forward,          sw_copy_backward },
[SW_OP_CUSTOM]         = { "custom", /* what a caller brings: inputs, shapes and layouts are its own */
                           "x:* -> y:*",                                             "",                    "x y",          "",
                           NULL,                     sw_custom_backward },
};
// clang-format on

static sw_tensor *output(const sw_call *call)
{
    return call == NULL ? NULL : call->out[0];
}

/* The first output of a call that is given as designated initialisers. */
#define RUN(step, op, ...) output(sw_call_run((step), (op), &(sw_call){__VA_ARGS__}))

sw_tensor *sw_op_linear(sw_step *step, const sw_tensor *x, const sw_tensor *weight, const sw_tensor *bias)
{
    return RUN(step, SW_OP_LINEAR, .in = {x, weight, bias});
}

sw_tensor *sw_op_linear_in_out(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                               const sw_tensor *bias)
{
    return RUN(step, SW_OP_LINEAR_IN_OUT, .in = {x, weight, bias});
}

sw_tensor *sw_op_expert_linear(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                               const sw_tensor *bias, const sw_tensor *ends)
{
    return RUN(step, SW_OP_EXPERT_LINEAR, .in = {x, weight, ends, bias});
}

sw_tensor *sw_op_expert_linear_in_out(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                                      const sw_tensor *bias, const sw_tensor *ends)
{
    return RUN(step, SW_OP_EXPERT_LINEAR_IN_OUT, .in = {x, weight, ends, bias});
}

sw_tensor *sw_op_add(sw_step *step, const sw_tensor *a, const sw_tensor *b)
{
    return RUN(step, SW_OP_ADD, .in = {a, b});
}

sw_tensor *sw_op_add_bias(sw_step *step, const sw_tensor *x, const sw_tensor *bias)
{
    return RUN(step, SW_OP_ADD_BIAS, .in = {x, bias});
}

sw_tensor *sw_op_multiply(sw_step *step, const sw_tensor *a, const sw_tensor *b)
{
    return RUN(step, SW_OP_MULTIPLY, .in = {a, b});
}

sw_tensor *sw_op_row_scale(sw_step *step, const sw_tensor *x, const sw_tensor *scale)
{
    return RUN(step, SW_OP_ROW_SCALE, .in = {x, scale});
}

sw_tensor *sw_op_scale(sw_step *step, const sw_tensor *x, double factor)
{
    return RUN(step, SW_OP_SCALE, .in = {x}, .args.factor = factor);
}

sw_tensor *sw_op_activate(sw_step *step, const sw_tensor *x, sw_activation activation)
{
    return RUN(step, SW_OP_ACTIVATE, .in = {x}, .args.activation = activation);
}

sw_tensor *sw_op_glu(sw_step *step, const sw_tensor *gate, const sw_tensor *up, sw_activation activation)
{
    return RUN(step, SW_OP_GLU, .in = {gate, up}, .args.activation = activation);
}

sw_tensor *sw_op_clamped_glu(sw_step *step, const sw_tensor *gate, const sw_tensor *up, double limit,
                             double alpha)
{
    return RUN(step, SW_OP_CLAMPED_GLU, .in = {gate, up}, .args = {.limit = limit, .alpha = alpha});
}

sw_tensor *sw_op_soft_cap(sw_step *step, const sw_tensor *x, double cap)
{
    return RUN(step, SW_OP_SOFT_CAP, .in = {x}, .args.factor = cap);
}

sw_tensor *sw_op_clamp(sw_step *step, const sw_tensor *x, double limit)
{
    return RUN(step, SW_OP_CLAMP, .in = {x}, .args.factor = limit);
}

sw_tensor *sw_op_softmax(sw_step *step, const sw_tensor *x)
{
    return RUN(step, SW_OP_SOFTMAX, .in = {x});
}

sw_tensor *sw_op_normalise(sw_step *step, const sw_tensor *x, double eps)
{
    return RUN(step, SW_OP_NORMALISE, .in = {x}, .args.eps = eps);
}

sw_tensor *sw_op_rms_norm(sw_step *step, const sw_tensor *x, const sw_tensor *weight, double eps,
                          double offset)
{
    return RUN(step, SW_OP_RMS_NORM, .in = {x, weight}, .args = {.eps = eps, .offset = offset});
}

sw_tensor *sw_op_square_sums(sw_step *step, const sw_tensor *x)
{
    return RUN(step, SW_OP_SQUARE_SUMS, .in = {x});
}

sw_tensor *sw_op_rms_by_sums(sw_step *step, const sw_tensor *x, const sw_tensor *sums,
                             const sw_tensor *weight, const sw_rms_args *args)
{
    return RUN(step, SW_OP_RMS_BY_SUMS, .in = {x, sums, weight},
               .args = {.eps = args->eps, .offset = args->offset, .full_width = args->full_width});
}

sw_tensor *sw_op_layer_norm(sw_step *step, const sw_tensor *x, const sw_tensor *weight, const sw_tensor *bias,
                            double eps)
{
    return RUN(step, SW_OP_LAYER_NORM, .in = {x, weight, bias}, .args.eps = eps);
}

sw_tensor *sw_op_rope(sw_step *step, const sw_tensor *x, const sw_rope_args *args)
{
    return RUN(step, SW_OP_ROPE, .in = {x, args->cos, args->sin, args->positions},
               .args.is_interleaved = args->is_interleaved);
}

sw_tensor *sw_op_attention(sw_step *step, const sw_tensor *q, const sw_tensor *k, const sw_tensor *v,
                           const sw_attend_args *args)
{
    return RUN(step, SW_OP_ATTENTION,
               .in = {q, k, v, args->q_positions, args->k_positions, args->slopes, args->sinks},
               .args = {.factor = args->scale,
                        .soft_cap = args->soft_cap,
                        .alpha = args->rounded_alibi,
                        .window = args->window,
                        .is_causal = args->is_causal});
}

sw_tensor *sw_op_embedding(sw_step *step, const sw_tensor *ids, const sw_tensor *weight)
{
    return RUN(step, SW_OP_EMBEDDING, .in = {ids, weight});
}

sw_tensor *sw_op_embedding_part(sw_step *step, const sw_tensor *ids, const sw_tensor *weight, int64_t first)
{
    return RUN(step, SW_OP_EMBEDDING_PART, .in = {ids, weight}, .args.first = first);
}

sw_tensor *sw_op_top_k(sw_step *step, const sw_tensor *x, const sw_top_k_choice *choice,
                       const sw_tensor **indices)
{
    const sw_call given = {
        .in = {x,                        choice->correction},
        .args = { .extent = choice->k,
               .n_groups = choice->n_groups,
               .n_kept = choice->n_kept,
               .group_best = choice->group_best}
    };
    const sw_call *call = sw_call_run(step, SW_OP_TOP_K, &given);

    if (indices != NULL)
        *indices = call == NULL ? NULL : call->out[1];
    return output(call);
}

sw_tensor *sw_op_gather_rows(sw_step *step, const sw_tensor *x, const sw_tensor *ids)
{
    return RUN(step, SW_OP_GATHER_ROWS, .in = {x, ids});
}

sw_tensor *sw_op_scatter_rows(sw_step *step, const sw_tensor *x, const sw_tensor *weights,
                              const sw_tensor *ids, uint64_t n_rows)
{
    return RUN(step, SW_OP_SCATTER_ROWS, .in = {x, weights, ids}, .args.extent = n_rows);
}

sw_tensor *sw_op_cross_entropy(sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                               double factor)
{
    return RUN(step, SW_OP_CROSS_ENTROPY, .in = {logits, targets}, .args.factor = factor);
}

sw_tensor *sw_op_sum(sw_step *step, const sw_tensor *x)
{
    return RUN(step, SW_OP_SUM, .in = {x});
}

static uint64_t last_extent(const sw_tensor *x)
{
    return x == NULL || x->n_dims == 0 ? 0 : x->dims[x->n_dims - 1];
}

sw_tensor *sw_op_concat(sw_step *step, const sw_tensor *a, const sw_tensor *b)
{
    return RUN(step, SW_OP_CONCAT, .in = {a, b}, .args.extent = last_extent(a) + last_extent(b));
}

sw_tensor *sw_op_append(sw_step *step, const sw_tensor *a, const sw_tensor *b)
{
    return RUN(step, SW_OP_APPEND, .in = {a, b}, .args.extent = last_extent(a) + last_extent(b));
}

sw_tensor *sw_op_copy(sw_step *step, const sw_tensor *x)
{
    return RUN(step, SW_OP_COPY, .in = {x});
}
