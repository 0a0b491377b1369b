/* What ends a step (cross-entropy, sums), and what puts elements elsewhere (concat, append, copy). */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/elementwise.h"
#include "kernel/loss.h"
#include "tensor/copy.h"
#include "tensor/rows_of_table.h"

static void set_scalar(const sw_tensor *scalar, double value)
{
    if (sw_tensor_dtype(scalar) == SW_DTYPE_F64)
        *(double *)sw_tensor_data(scalar) = value;
    else
        *(float *)sw_tensor_data(scalar) = (float)value;
}

static double scalar_of(const sw_call *call, const void *value)
{
    return call->dtype == SW_DTYPE_F64 ? *(const double *)value : (double)*(const float *)value;
}

static sw_status loss_args(sw_call *call, sw_loss_args *out, sw_error *err)
{
    const void *targets = NULL;
    const sw_tensor *logits = call->in[0];

    *out = (sw_loss_args){.n_rows = sw_call_elems(call, 1),
                          .width = (size_t)logits->dims[logits->n_dims - 1],
                          .factor = call->args.factor,
                          .max = sw_tensor_data(call->out[1]),
                          .sum = sw_tensor_data(call->out[2])};
    SW_TRY(sw_call_dense(call, 0, &out->x, err));
    SW_TRY(sw_call_dense(call, 1, &targets, err));
    out->targets = targets;
    return SW_OK;
}

static sw_status check_targets(const sw_loss_args *args, sw_error *err)
{
    for (size_t i = 0; i < args->n_rows; i++) {
        if (args->targets[i] >= 0 && (uint64_t)args->targets[i] >= args->width) {
            return SW_FAIL(err, SW_E_ARGUMENT, "check the token file and the model's vocabulary",
                           "target %" PRId32 " of row %zu, there are %zu logits", args->targets[i], i,
                           args->width);
        }
    }
    return SW_OK;
}

sw_status sw_cross_entropy_forward(sw_call *call, sw_error *err)
{
    sw_loss_args args;
    sw_stack *stack = sw_step_stack(call->step);
    size_t bytes = sw_call_elems(call, 1) * sw_elem_bytes(call->dtype);

    SW_TRY(loss_args(call, &args, err));
    SW_TRY(check_targets(&args, err));
    sw_stack_mark mark = sw_stack_top(stack);
    SW_TRY(sw_call_workspace(call, bytes, &args.target_x, err));
    SW_TRY(sw_call_workspace(call, bytes, &args.loss, err));
    sw_kernel_cross_entropy(sw_call_kernel(call), call->dtype, &args);
    double sum = sw_kernel_sum(sw_call_kernel(call), call->dtype, args.loss, args.n_rows);
    set_scalar(call->out[0], call->args.factor * sum);
    sw_stack_release(stack, mark);
    return SW_OK;
}

sw_status sw_cross_entropy_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_loss_args args;

    SW_TRY(loss_args(call, &args, err));
    args.factor *= scalar_of(call, g->d_out);
    args.d_x = g->d_in[0];
    sw_kernel_cross_entropy_back(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_sum_forward(sw_call *call, sw_error *err)
{
    const void *x = NULL;

    SW_TRY(sw_call_dense(call, 0, &x, err));
    set_scalar(call->out[0], sw_kernel_sum(sw_call_kernel(call), call->dtype, x, sw_call_elems(call, 0)));
    return SW_OK;
}

sw_status sw_sum_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    size_t n = sw_call_elems(call, 0);

    (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)g->d_in[0] + i * sw_elem_bytes(call->dtype), g->d_out, sw_elem_bytes(call->dtype));
    return SW_OK;
}

/* The rows of one input, `at` elements from the begin of an output row: there or back. */
typedef struct piece {
    char *outer; /* rows of a + b */
    size_t outer_bytes;
    char *inner;
    size_t inner_bytes;
    size_t n_rows;
} piece;

static piece piece_of(const sw_call *call, uint32_t i, void *outer, void *inner)
{
    size_t bytes = sw_elem_bytes(call->dtype);
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    size_t first = (size_t)call->in[0]->dims[call->in[0]->n_dims - 1];
    size_t width = i == 0 ? first : rows.width - first;

    return (piece){(char *)outer + (i == 0 ? 0 : first * bytes), rows.width * bytes, inner, width * bytes,
                   rows.n_rows};
}

sw_status sw_concat_forward(sw_call *call, sw_error *err)
{
    for (uint32_t i = 0; i < 2; i++) {
        const void *data = NULL;
        SW_TRY(sw_call_dense(call, i, &data, err));
        piece p = piece_of(call, i, sw_tensor_data(call->out[0]), NULL);
        for (size_t r = 0; r < p.n_rows; r++)
            memcpy(p.outer + r * p.outer_bytes, (const char *)data + r * p.inner_bytes, p.inner_bytes);
    }
    return SW_OK;
}

sw_status sw_concat_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    (void)err;
    for (uint32_t i = 0; i < 2; i++) {
        if (g->d_in[i] == NULL)
            continue;
        piece p = piece_of(call, i, NULL, g->d_in[i]);
        size_t at = i == 0 ? 0 : p.outer_bytes - p.inner_bytes;
        for (size_t r = 0; r < p.n_rows; r++)
            memcpy(p.inner + r * p.inner_bytes, (const char *)g->d_out + r * p.outer_bytes + at,
                   p.inner_bytes);
    }
    return SW_OK;
}

/* Rows of a and of y: `heads` of them to one of b. */
typedef struct appended {
    size_t n_rows;
    size_t heads;
    size_t a_bytes;
    size_t b_bytes;
    size_t y_bytes;
} appended;

static appended appended_of(const sw_call *call)
{
    const sw_tensor *a = call->in[0];
    const sw_tensor *b = call->in[1];
    sw_tensor_rows rows = sw_call_out_rows(call, 1);
    size_t bytes = sw_elem_bytes(call->dtype);

    return (appended){.n_rows = rows.n_rows,
                      .heads = (size_t)a->dims[a->n_dims - 2],
                      .a_bytes = (size_t)a->dims[a->n_dims - 1] * bytes,
                      .b_bytes = (size_t)b->dims[b->n_dims - 1] * bytes,
                      .y_bytes = rows.width * bytes};
}

sw_status sw_append_forward(sw_call *call, sw_error *err)
{
    const void *a = NULL;
    const void *b = NULL;
    appended of = appended_of(call);

    SW_TRY(sw_call_dense(call, 0, &a, err));
    SW_TRY(sw_call_dense(call, 1, &b, err));
    for (size_t r = 0; r < of.n_rows; r++) {
        char *y = (char *)sw_tensor_data(call->out[0]) + r * of.y_bytes;
        memcpy(y, (const char *)a + r * of.a_bytes, of.a_bytes);
        memcpy(y + of.a_bytes, (const char *)b + r / of.heads * of.b_bytes, of.b_bytes);
    }
    return SW_OK;
}

/* d_b is the sum over the rows that it stands behind. */
sw_status sw_append_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    appended of = appended_of(call);
    size_t width = of.b_bytes / sw_elem_bytes(call->dtype);

    (void)err;
    if (g->d_in[1] != NULL)
        memset(g->d_in[1], 0, sw_call_bytes(call, 1));
    for (size_t r = 0; r < of.n_rows; r++) {
        const char *d_y = (const char *)g->d_out + r * of.y_bytes;
        if (g->d_in[0] != NULL)
            memcpy((char *)g->d_in[0] + r * of.a_bytes, d_y, of.a_bytes);
        if (g->d_in[1] != NULL) {
            sw_kernel_accumulate(sw_call_kernel(call), call->dtype, 1, d_y + of.a_bytes,
                                 (char *)g->d_in[1] + r / of.heads * of.b_bytes, width);
        }
    }
    return SW_OK;
}

sw_status sw_copy_forward(sw_call *call, sw_error *err)
{
    (void)err;
    sw_copy_to_dense(call->in[0], sw_tensor_data(call->out[0]));
    return SW_OK;
}

sw_status sw_copy_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    size_t n = sw_call_elems(call, 0);

    (void)err;
    if (g->adds[0])
        sw_kernel_accumulate(sw_call_kernel(call), call->dtype, 1, g->d_out, g->d_in[0], n);
    else
        memcpy(g->d_in[0], g->d_out, n * sw_elem_bytes(call->dtype));
    return SW_OK;
}
