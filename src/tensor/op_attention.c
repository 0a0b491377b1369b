/*
 * Attention: heads are read where they stand, whatever the order of batch, tokens and heads in memory, as
 * long as a head's elements lie together (kernel/attention.h).
 */
#include "kernel/attention.h"

#include <string.h>

#include "base/status.h"
#include "tensor/rows_of_table.h"

enum { Q, K, V, Q_POSITIONS, K_POSITIONS, SLOPES, SINKS };

static const sw_tensor *standing(const sw_call *call, uint32_t i)
{
    return call->dense[i] != NULL ? call->dense[i] : call->in[i];
}

/* Copied without gaps, unless its last dim has none. */
static sw_status last_dim_together(sw_call *call, uint32_t i, const sw_tensor **out, sw_error *err)
{
    const sw_tensor *t = standing(call, i);
    uint32_t last = t->n_dims - 1;
    const void *data = NULL;

    if (t->strides[last] != 1 && t->dims[last] > 1)
        SW_TRY(sw_call_dense(call, i, &data, err));
    *out = standing(call, i);
    return SW_OK;
}

static sw_status heads_of(sw_call *call, uint32_t i, sw_heads *out, sw_error *err)
{
    const sw_tensor *t = NULL;

    SW_TRY(last_dim_together(call, i, &t, err));
    *out = (sw_heads){sw_tensor_data(t), (size_t)t->strides[0], (size_t)t->strides[1], (size_t)t->strides[2]};
    return SW_OK;
}

static sw_status positions_of(sw_call *call, uint32_t i, const int32_t **out, size_t *batch, sw_error *err)
{
    const sw_tensor *t = NULL;

    SW_TRY(last_dim_together(call, i, &t, err));
    *out = sw_tensor_data(t);
    *batch = (size_t)t->strides[0];
    return SW_OK;
}

/* [B, T, H, width] without gaps, in the shape of input or output `t`. */
static sw_heads_out dense_heads(void *values, const sw_tensor *t)
{
    size_t head = (size_t)t->dims[3];
    size_t token = head * (size_t)t->dims[2];
    return (sw_heads_out){values, token * (size_t)t->dims[1], token, head};
}

static sw_status attention_args(sw_call *call, sw_attention_args *a, sw_error *err)
{
    *a = (sw_attention_args){
        .n_batch = (size_t)call->in[Q]->dims[0],
        .n_queries = (size_t)call->in[Q]->dims[1],
        .n_keys = (size_t)call->in[K]->dims[1],
        .n_heads = (size_t)call->in[Q]->dims[2],
        .n_kv_heads = (size_t)call->in[K]->dims[2],
        .width = (size_t)call->in[Q]->dims[3],
        .v_width = (size_t)call->in[V]->dims[3],
        .scale = call->args.factor,
        .soft_cap = call->args.soft_cap,
        .rounded_alibi = call->args.alpha,
        .is_causal = call->args.is_causal,
        .window = call->args.window,
        .out = dense_heads(sw_tensor_data(call->out[0]), call->out[0]),
        .lse = sw_tensor_data(call->out[1]),
    };
    SW_TRY(heads_of(call, Q, &a->q, err));
    SW_TRY(heads_of(call, K, &a->k, err));
    SW_TRY(heads_of(call, V, &a->v, err));
    SW_TRY(positions_of(call, Q_POSITIONS, &a->q_positions, &a->q_positions_batch, err));
    SW_TRY(positions_of(call, K_POSITIONS, &a->k_positions, &a->k_positions_batch, err));
    SW_TRY(sw_call_dense(call, SLOPES, &a->slopes, err));
    return sw_call_dense(call, SINKS, &a->sinks, err);
}

sw_status sw_attention_forward(sw_call *call, sw_error *err)
{
    sw_attention_args args;
    sw_stack *stack = sw_step_stack(call->step);
    size_t bytes = 0;
    void *workspace = NULL;

    SW_TRY(attention_args(call, &args, err));
    if (args.n_heads == 0)
        return SW_OK; /* a rank without heads */
    SW_TRY(sw_attention_workspace(sw_call_kernel(call), call->dtype, &args, false, &bytes, err));
    sw_stack_mark mark = sw_stack_top(stack);
    SW_TRY(sw_call_workspace(call, bytes, &workspace, err));
    sw_kernel_attention(sw_call_kernel(call), call->dtype, &args, workspace);
    sw_stack_release(stack, mark);
    return SW_OK;
}

/* The gradient of q, k or v: the kernel makes all three, one that nobody wants goes to the workspace. */
static sw_status gradient_heads(sw_call *call, const sw_gradients *g, uint32_t i, sw_heads_out *out,
                                sw_error *err)
{
    void *values = g->d_in[i];

    if (values == NULL)
        SW_TRY(sw_call_workspace(call, sw_call_bytes(call, i), &values, err));
    *out = dense_heads(values, call->in[i]);
    return SW_OK;
}

sw_status sw_attention_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_attention_args args;
    size_t bytes = 0;
    void *workspace = NULL;
    sw_heads_out d_out = dense_heads(NULL, call->out[0]);

    SW_TRY(attention_args(call, &args, err));
    if (args.n_heads == 0)
        return SW_OK;
    args.d_out = (sw_heads){g->d_out, d_out.batch, d_out.token, d_out.head};
    SW_TRY(gradient_heads(call, g, Q, &args.d_q, err));
    SW_TRY(gradient_heads(call, g, K, &args.d_k, err));
    SW_TRY(gradient_heads(call, g, V, &args.d_v, err));
    args.d_sinks = g->d_in[SINKS];
    if (args.d_sinks != NULL && !g->adds[SINKS])
        memset(args.d_sinks, 0, sw_call_bytes(call, SINKS));
    SW_TRY(sw_attention_workspace(sw_call_kernel(call), call->dtype, &args, true, &bytes, err));
    SW_TRY(sw_call_workspace(call, bytes, &workspace, err));
    sw_kernel_attention_back(sw_call_kernel(call), call->dtype, &args, workspace);
    return SW_OK;
}
