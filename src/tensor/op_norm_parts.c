/*
 * The RMS norm in two pieces, between which sums of squares are reduced over ranks. Dims: R rows, C their
 * part that is here, W their whole width.
 *
 *     y = x * s * (offset + w),  s = 1 / sqrt(sums / W + eps),  ds / dsums = -s^3 / (2 W)
 */
#include "kernel/norm.h"

#include <string.h>

#include "base/status.h"
#include "tensor/rows_of_table.h"

/* x and its rows; `scale` is left to the caller. */
static sw_status row_args(sw_call *call, sw_norm_args *out, sw_error *err)
{
    const sw_tensor *x = call->in[0];
    uint64_t n_rows = 1;

    for (uint32_t i = 0; i + 1 < x->n_dims; i++)
        n_rows *= x->dims[i];
    *out = (sw_norm_args){.n_rows = (size_t)n_rows,
                          .width = (size_t)x->dims[x->n_dims - 1],
                          .full_width = (size_t)call->args.full_width,
                          .eps = call->args.eps,
                          .offset = call->args.offset};
    return sw_call_dense(call, 0, &out->x, err);
}

sw_status sw_square_sums_forward(sw_call *call, sw_error *err)
{
    sw_norm_args args;

    SW_TRY(row_args(call, &args, err));
    args.scale = sw_tensor_data(call->out[0]);
    sw_kernel_rms_square_sums(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* d_x = 2 x d_sums */
sw_status sw_square_sums_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_norm_args rows;
    void *twice = NULL;

    SW_TRY(row_args(call, &rows, err));
    SW_TRY(sw_call_workspace(call, rows.n_rows * sw_elem_bytes(call->dtype), &twice, err));
    sw_kernel_scale(sw_call_kernel(call), call->dtype, 2, g->d_out, twice, rows.n_rows);
    sw_rows_args args = {rows.n_rows, rows.width, rows.x, twice, g->d_in[0], g->adds[0]};
    sw_kernel_row_scale(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

static sw_status apply_args(sw_call *call, sw_norm_args *out, sw_error *err)
{
    SW_TRY(row_args(call, out, err));
    out->y = sw_tensor_data(call->out[0]);
    out->scale = sw_tensor_data(call->out[1]);
    return sw_call_dense(call, 2, &out->weight, err);
}

sw_status sw_rms_by_sums_forward(sw_call *call, sw_error *err)
{
    sw_norm_args args;
    const void *sums = NULL;

    if (call->args.full_width == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "give the width of a whole row", "rows of width 0");
    SW_TRY(apply_args(call, &args, err));
    SW_TRY(sw_call_dense(call, 1, &sums, err));
    memcpy(args.scale, sums, args.n_rows * sw_elem_bytes(call->dtype));
    sw_kernel_rms_scales(call->dtype, &args);
    sw_kernel_rms_apply(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* d_sums from the rows' dots of d_y and y / s. */
static void sums_back(const sw_call *call, const sw_norm_args *args, void *d_sums)
{
    double factor = -0.5 / (double)args->full_width;

    for (size_t r = 0; r < args->n_rows; r++) {
        if (call->dtype == SW_DTYPE_F64) {
            double s = ((const double *)args->scale)[r];
            ((double *)d_sums)[r] = factor * s * s * s * ((const double *)args->dot)[r];
        } else {
            double s = (double)((const float *)args->scale)[r];
            ((float *)d_sums)[r] = (float)(factor * s * s * s * (double)((const float *)args->dot)[r]);
        }
    }
}

/* The kernel's d_x has the part that goes through the sums in it; with dots of 0 it has not. */
sw_status sw_rms_by_sums_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_norm_args args;

    SW_TRY(apply_args(call, &args, err));
    size_t bytes = args.n_rows * sw_elem_bytes(call->dtype);
    args.d_y = g->d_out;
    args.d_x = g->d_in[0];
    args.d_weight = g->d_in[2];
    SW_TRY(sw_call_workspace(call, bytes, &args.dot, err));
    SW_TRY(sw_call_workspace(call, sw_kernel_norm_parts_bytes(call->dtype, &args), &args.parts, err));
    if (g->d_in[1] != NULL) {
        sw_kernel_rms_dots(sw_call_kernel(call), call->dtype, &args);
        sums_back(call, &args, g->d_in[1]);
    }
    if (args.d_weight != NULL && !g->adds[2])
        memset(args.d_weight, 0, sw_call_bytes(call, 2));
    sw_kernel_rms_weight_back(sw_call_kernel(call), call->dtype, &args);
    memset(args.dot, 0, bytes);
    if (args.d_x != NULL)
        sw_kernel_rms_apply_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}
