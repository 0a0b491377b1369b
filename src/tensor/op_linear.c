/* Matrix products with a weight, in both of its orders. Dims: M rows of x, I in, O out. */
#include "base/status.h"
#include "tensor/rows_of_table.h"

/* x and weight as matrices. */
typedef struct operands {
    const void *x; /* [M, I] */
    sw_tensor_rows x_rows;
    const void *weight; /* [O, I], or [I, O] */
    sw_tensor_rows weight_rows;
    sw_dtype weight_type;
    size_t n_out;
} operands;

static sw_status find_operands(sw_call *call, operands *out, sw_error *err)
{
    SW_TRY(sw_call_rows(call, 0, 1, &out->x_rows, &out->x, err));
    SW_TRY(sw_call_rows(call, 1, 1, &out->weight_rows, &out->weight, err));
    out->weight_type = sw_tensor_dtype(call->in[1]);
    out->n_out = sw_call_out_rows(call, 1).width;
    return SW_OK;
}

static sw_status forward(sw_call *call, bool is_in_out, sw_error *err)
{
    operands o = {0};
    const void *bias = NULL;

    SW_TRY(find_operands(call, &o, err));
    SW_TRY(sw_call_dense(call, 2, &bias, err));
    sw_product product = {
        .m = o.x_rows.n_rows,
        .n = o.n_out,
        .k = o.x_rows.width,
        .a = o.x,
        .b = o.weight,
        .c = sw_tensor_data(call->out[0]),
        .bias = bias,
        .a_stride = o.x_rows.stride,
        .b_stride = o.weight_rows.stride,
        .a_type = call->dtype,
        .b_type = o.weight_type,
        .c_type = call->dtype,
        .b_is_transposed = !is_in_out,
    };
    return sw_call_product(call, &product, err);
}

/* dx = dy W */
static sw_status x_backward(sw_call *call, const sw_gradients *g, const operands *o, bool is_in_out,
                            sw_error *err)
{
    sw_product product = {
        .m = o->x_rows.n_rows,
        .n = o->x_rows.width,
        .k = o->n_out,
        .a = g->d_out,
        .b = o->weight,
        .c = g->d_in[0],
        .b_stride = o->weight_rows.stride,
        .a_type = call->dtype,
        .b_type = o->weight_type,
        .c_type = call->dtype,
        .b_is_transposed = is_in_out,
        .accumulate = g->adds[0],
    };
    return sw_call_product(call, &product, err);
}

/* dW = dy^T x, or x^T dy */
static sw_status weight_backward(sw_call *call, const sw_gradients *g, const operands *o, bool is_in_out,
                                 sw_error *err)
{
    sw_product product = {
        .m = is_in_out ? o->x_rows.width : o->n_out,
        .n = is_in_out ? o->n_out : o->x_rows.width,
        .k = o->x_rows.n_rows,
        .a = is_in_out ? o->x : g->d_out,
        .b = is_in_out ? g->d_out : o->x,
        .c = g->d_in[1],
        .a_stride = is_in_out ? o->x_rows.stride : 0,
        .b_stride = is_in_out ? 0 : o->x_rows.stride,
        .a_type = call->dtype,
        .b_type = call->dtype,
        .c_type = call->dtype,
        .a_is_transposed = true,
        .accumulate = g->adds[1],
    };
    return sw_call_product(call, &product, err);
}

static sw_status backward(sw_call *call, const sw_gradients *g, bool is_in_out, sw_error *err)
{
    operands o = {0};

    SW_TRY(find_operands(call, &o, err));
    if (g->d_in[0] != NULL)
        SW_TRY(x_backward(call, g, &o, is_in_out, err));
    if (g->d_in[1] != NULL)
        SW_TRY(weight_backward(call, g, &o, is_in_out, err));
    if (g->d_in[2] != NULL) {
        sw_rows_args sum = {o.x_rows.n_rows, o.n_out, g->d_out, NULL, g->d_in[2], g->adds[2]};
        sw_kernel_column_sum(sw_call_kernel(call), call->dtype, &sum);
    }
    return SW_OK;
}

sw_status sw_linear_forward(sw_call *call, sw_error *err)
{
    return forward(call, false, err);
}

sw_status sw_linear_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return backward(call, g, false, err);
}

sw_status sw_linear_in_out_forward(sw_call *call, sw_error *err)
{
    return forward(call, true, err);
}

sw_status sw_linear_in_out_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return backward(call, g, true, err);
}
