/* Over rows of the last dim: softmax, sums and norms; and the rotary embedding, over heads of a token. */
#include "kernel/norm.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/rotary.h"
#include "kernel/softmax.h"
#include "tensor/rows_of_table.h"

sw_status sw_softmax_forward(sw_call *call, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    sw_softmax_args args = {.n_rows = rows.n_rows, .width = rows.width, .out = sw_tensor_data(call->out[0])};

    SW_TRY(sw_call_dense(call, 0, &args.x, err));
    sw_kernel_softmax(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_softmax_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    sw_softmax_args args = {.n_rows = rows.n_rows,
                            .width = rows.width,
                            .y = sw_tensor_data(call->out[0]),
                            .d_y = g->d_out,
                            .out = g->d_in[0]};

    (void)err;
    sw_kernel_softmax_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_normalise_forward(sw_call *call, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    sw_softmax_args args = {.n_rows = rows.n_rows,
                            .width = rows.width,
                            .out = sw_tensor_data(call->out[0]),
                            .eps = call->args.eps,
                            .sum = sw_tensor_data(call->out[1])};

    SW_TRY(sw_call_dense(call, 0, &args.x, err));
    sw_kernel_normalise(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_normalise_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    sw_softmax_args args = {.n_rows = rows.n_rows,
                            .width = rows.width,
                            .y = sw_tensor_data(call->out[0]),
                            .d_y = g->d_out,
                            .out = g->d_in[0],
                            .sum = sw_tensor_data(call->out[1])};

    (void)err;
    sw_kernel_normalise_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* What forward and backward of both norms read; outputs: y, scale, and the mean of a layer norm. */
static sw_status norm_args(sw_call *call, sw_norm_args *out, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);

    *out = (sw_norm_args){.n_rows = rows.n_rows,
                          .width = rows.width,
                          .eps = call->args.eps,
                          .offset = call->args.offset,
                          .y = sw_tensor_data(call->out[0]),
                          .scale = sw_tensor_data(call->out[1])};
    SW_TRY(sw_call_dense(call, 0, &out->x, err));
    return sw_call_dense(call, 1, &out->weight, err);
}

/* Kernels add to gradients of weights. */
static void *weight_gradient(const sw_call *call, const sw_gradients *g, uint32_t i)
{
    if (g->d_in[i] != NULL && !g->adds[i])
        memset(g->d_in[i], 0, sw_call_bytes(call, i));
    return g->d_in[i];
}

static sw_status norm_back_args(sw_call *call, const sw_gradients *g, sw_norm_args *out, sw_error *err)
{
    SW_TRY(norm_args(call, out, err));
    out->d_y = g->d_out;
    out->d_x = g->d_in[0];
    if (out->d_x == NULL)
        SW_TRY(sw_call_workspace(call, sw_call_bytes(call, 0), &out->d_x, err));
    out->d_weight = weight_gradient(call, g, 1);
    return SW_OK;
}

/* The gradients that are wanted are set. */
static sw_status parts_room(sw_call *call, sw_norm_args *args, sw_error *err)
{
    return sw_call_workspace(call, sw_kernel_norm_parts_bytes(call->dtype, args), &args->parts, err);
}

sw_status sw_rms_norm_forward(sw_call *call, sw_error *err)
{
    sw_norm_args args;

    SW_TRY(norm_args(call, &args, err));
    sw_kernel_rms_norm(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_rms_norm_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_norm_args args;

    SW_TRY(norm_back_args(call, g, &args, err));
    SW_TRY(sw_call_workspace(call, args.n_rows * sw_elem_bytes(call->dtype), &args.dot, err));
    SW_TRY(parts_room(call, &args, err));
    sw_kernel_rms_norm_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_layer_norm_forward(sw_call *call, sw_error *err)
{
    sw_norm_args args;

    if (call->in[1] == NULL && call->in[2] != NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "give both or leave out both", "a bias, but no weight");
    SW_TRY(norm_args(call, &args, err));
    SW_TRY(sw_call_dense(call, 2, &args.bias, err));
    args.mean = sw_tensor_data(call->out[2]);
    sw_kernel_layer_norm(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_layer_norm_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_norm_args args;

    SW_TRY(norm_back_args(call, g, &args, err));
    args.mean = sw_tensor_data(call->out[2]);
    args.d_bias = weight_gradient(call, g, 2);
    SW_TRY(parts_room(call, &args, err));
    sw_kernel_layer_norm_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

static sw_status check_positions(const sw_rotary_args *args, uint64_t n_table, sw_error *err)
{
    for (size_t i = 0; i < args->n_tokens; i++) {
        if (args->positions[i] < 0 || (uint64_t)args->positions[i] >= n_table) {
            return SW_FAIL(err, SW_E_ARGUMENT, "make the tables longer",
                           "position %" PRId32 " of token %zu, the tables have %" PRIu64, args->positions[i],
                           i, n_table);
        }
    }
    return SW_OK;
}

static sw_status rope(sw_call *call, sw_rotary_args *args, sw_error *err)
{
    const sw_tensor *x = call->in[0];
    const void *positions = NULL;

    args->n_tokens = sw_call_out_rows(call, 2).n_rows;
    args->n_heads = (size_t)x->dims[x->n_dims - 2];
    args->width = (size_t)x->dims[x->n_dims - 1];
    args->rotated = 2 * (size_t)call->in[1]->dims[1];
    args->is_interleaved = call->args.is_interleaved;
    if (args->rotated > args->width) {
        return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes",
                       "tables turn %zu elements of heads that are %zu wide", args->rotated, args->width);
    }
    SW_TRY(sw_call_dense(call, 1, &args->cos, err));
    SW_TRY(sw_call_dense(call, 2, &args->sin, err));
    SW_TRY(sw_call_dense(call, 3, &positions, err));
    args->positions = positions;
    SW_TRY(check_positions(args, call->in[1]->dims[0], err));
    sw_kernel_rotary(sw_call_kernel(call), call->dtype, args);
    return SW_OK;
}

sw_status sw_rope_forward(sw_call *call, sw_error *err)
{
    sw_rotary_args args = {.y = sw_tensor_data(call->out[0]), .y_stride = sw_call_out_rows(call, 2).width};
    sw_tensor_rows rows = {0};

    SW_TRY(sw_call_rows(call, 0, 2, &rows, &args.x, err));
    args.x_stride = rows.stride;
    return rope(call, &args, err);
}

sw_status sw_rope_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    size_t width = sw_call_out_rows(call, 2).width;
    sw_rotary_args args = {
        .x = g->d_out, .y = g->d_in[0], .x_stride = width, .y_stride = width, .is_back = true};

    return rope(call, &args, err);
}
