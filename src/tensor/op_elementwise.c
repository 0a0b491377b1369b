/* Element by element: each function takes what its row says and calls kernel/elementwise.h. */
#include "kernel/elementwise.h"

#include <string.h>

#include "base/status.h"
#include "tensor/rows_of_table.h"

/* All inputs that are there, dense. */
static sw_status dense_inputs(sw_call *call, const void **in, sw_error *err)
{
    for (uint32_t i = 0; i < call->n_inputs; i++)
        SW_TRY(sw_call_dense(call, i, &in[i], err));
    return SW_OK;
}

/* The gradient of an input that is the output's: copied, or added. */
static void pass_on(const sw_call *call, const sw_gradients *g, uint32_t i, double factor)
{
    size_t n = sw_call_elems(call, i);

    if (g->d_in[i] == NULL)
        return;
    if (g->adds[i])
        sw_kernel_accumulate(sw_call_kernel(call), call->dtype, factor, g->d_out, g->d_in[i], n);
    else
        sw_kernel_scale(sw_call_kernel(call), call->dtype, factor, g->d_out, g->d_in[i], n);
}

sw_status sw_add_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_add(sw_call_kernel(call), call->dtype, in[0], in[1], sw_tensor_data(call->out[0]),
                  sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_add_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    (void)err;
    pass_on(call, g, 0, 1);
    pass_on(call, g, 1, 1);
    return SW_OK;
}

sw_status sw_add_bias_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};
    sw_tensor_rows rows = sw_call_out_rows(call, 1);

    SW_TRY(dense_inputs(call, in, err));
    sw_rows_args args = {rows.n_rows, rows.width, in[0], in[1], sw_tensor_data(call->out[0]), false};
    sw_kernel_add_bias(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_add_bias_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_tensor_rows rows = sw_call_out_rows(call, 1);

    (void)err;
    pass_on(call, g, 0, 1);
    if (g->d_in[1] != NULL) {
        sw_rows_args sum = {rows.n_rows, rows.width, g->d_out, NULL, g->d_in[1], g->adds[1]};
        sw_kernel_column_sum(sw_call_kernel(call), call->dtype, &sum);
    }
    return SW_OK;
}

sw_status sw_multiply_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_multiply(sw_call_kernel(call), call->dtype, in[0], in[1], sw_tensor_data(call->out[0]),
                       sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_multiply_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    for (uint32_t i = 0; i < 2; i++) {
        if (g->d_in[i] != NULL)
            sw_kernel_multiply(sw_call_kernel(call), call->dtype, g->d_out, in[1 - i], g->d_in[i],
                               sw_call_elems(call, 0));
    }
    return SW_OK;
}

sw_status sw_row_scale_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};
    sw_tensor_rows rows = sw_call_out_rows(call, 1);

    SW_TRY(dense_inputs(call, in, err));
    sw_rows_args args = {rows.n_rows, rows.width, in[0], in[1], sw_tensor_data(call->out[0]), false};
    sw_kernel_row_scale(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_row_scale_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};
    sw_tensor_rows rows = sw_call_out_rows(call, 1);

    SW_TRY(dense_inputs(call, in, err));
    if (g->d_in[0] != NULL) {
        sw_rows_args args = {rows.n_rows, rows.width, g->d_out, in[1], g->d_in[0], g->adds[0]};
        sw_kernel_row_scale(sw_call_kernel(call), call->dtype, &args);
    }
    if (g->d_in[1] != NULL) {
        sw_rows_args args = {rows.n_rows, rows.width, g->d_out, in[0], g->d_in[1], false};
        sw_kernel_row_dot(sw_call_kernel(call), call->dtype, &args);
    }
    return SW_OK;
}

sw_status sw_scale_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_scale(sw_call_kernel(call), call->dtype, call->args.factor, in[0], sw_tensor_data(call->out[0]),
                    sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_scale_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    (void)err;
    pass_on(call, g, 0, call->args.factor);
    return SW_OK;
}

sw_status sw_activate_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_activate(sw_call_kernel(call), call->dtype, call->args.activation, in[0],
                       sw_tensor_data(call->out[0]), sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_activate_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_activate_back(sw_call_kernel(call), call->dtype, call->args.activation, in[0], g->d_out,
                            g->d_in[0], sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_soft_cap_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    if (!(call->args.factor > 0))
        return SW_FAIL(err, SW_E_ARGUMENT, "leave it out", "a cap of %g", call->args.factor);
    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_soft_cap(sw_call_kernel(call), call->dtype, call->args.factor, in[0],
                       sw_tensor_data(call->out[0]), sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_soft_cap_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_soft_cap_back(sw_call_kernel(call), call->dtype, call->args.factor, in[0], g->d_out, g->d_in[0],
                            sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_clamp_forward(sw_call *call, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    if (!(call->args.factor > 0))
        return SW_FAIL(err, SW_E_ARGUMENT, "leave it out", "a limit of %g", call->args.factor);
    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_clamp(sw_call_kernel(call), call->dtype, call->args.factor, in[0], sw_tensor_data(call->out[0]),
                    sw_call_elems(call, 0));
    return SW_OK;
}

sw_status sw_clamp_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const void *in[SW_MAX_INPUTS] = {NULL};

    SW_TRY(dense_inputs(call, in, err));
    sw_kernel_clamp_back(sw_call_kernel(call), call->dtype, call->args.factor, in[0], g->d_out, g->d_in[0],
                         sw_call_elems(call, 0));
    return SW_OK;
}

/* Gate and up may be halves of one matrix: where they stand if both have one stride, else without gaps. */
static sw_status glu_args(sw_call *call, sw_glu_args *out, sw_error *err)
{
    sw_tensor_rows gate = {0};
    sw_tensor_rows up = {0};

    *out = (sw_glu_args){
        .activation = call->args.activation, .limit = call->args.limit, .alpha = call->args.alpha};
    SW_TRY(sw_call_rows(call, 0, 1, &gate, &out->gate, err));
    SW_TRY(sw_call_rows(call, 1, 1, &up, &out->up, err));
    if (gate.stride != up.stride) {
        SW_TRY(sw_call_dense(call, 0, &out->gate, err));
        SW_TRY(sw_call_dense(call, 1, &out->up, err));
        gate.stride = gate.width;
    }
    out->n_rows = gate.n_rows;
    out->width = gate.width;
    out->stride = gate.stride;
    return SW_OK;
}

sw_status sw_glu_forward(sw_call *call, sw_error *err)
{
    sw_glu_args args;

    SW_TRY(glu_args(call, &args, err));
    args.out = sw_tensor_data(call->out[0]);
    sw_kernel_glu(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* The kernel makes both gradients; one that nobody wants goes to the workspace. */
sw_status sw_glu_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_glu_args args;

    SW_TRY(glu_args(call, &args, err));
    args.d_out = g->d_out;
    args.d_gate = g->d_in[0];
    args.d_up = g->d_in[1];
    args.d_stride = args.width;
    if (args.d_gate == NULL)
        SW_TRY(sw_call_workspace(call, sw_call_bytes(call, 0), &args.d_gate, err));
    if (args.d_up == NULL)
        SW_TRY(sw_call_workspace(call, sw_call_bytes(call, 1), &args.d_up, err));
    sw_kernel_glu_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}
