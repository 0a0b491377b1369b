/*
 * Matrix products of rows with the weights of their experts. Dims: N rows, of which each expert has a run, E
 * experts, I in, O out.
 *
 * Runs differ from step to step, and a product is made ready when its shape is first seen (kernel/product.h):
 * runs are taken in pieces of a power of two rows, so that a few shapes serve them all.
 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "tensor/rows_of_table.h"

enum { X = 0, WEIGHT, ENDS, BIAS };

typedef struct operands {
    const char *x; /* [N, I] */
    sw_tensor_rows x_rows;
    const char *weight; /* [E, O, I], or [E, I, O] */
    sw_tensor_rows weight_rows;
    sw_dtype weight_type;
    const int32_t *ends; /* [E] */
    size_t n_experts;
    size_t n_in;
    size_t n_out;
    size_t bytes; /* of an element of x */
    bool is_in_out;
} operands;

/* The rows of an expert. */
typedef struct run {
    size_t expert;
    size_t begin;
    size_t length;
} run;

static run run_of(const operands *o, size_t expert)
{
    size_t begin = expert == 0 ? 0 : (size_t)o->ends[expert - 1];
    return (run){expert, begin, (size_t)o->ends[expert] - begin};
}

static sw_status check_ends(const operands *o, sw_error *err)
{
    int64_t last = 0;

    for (size_t e = 0; e < o->n_experts; e++) {
        if (o->ends[e] < last || (uint64_t)o->ends[e] > o->x_rows.n_rows) {
            return SW_FAIL(err, SW_E_ARGUMENT, "sort rows by expert",
                           "rows of expert %zu are %" PRId64 " to %" PRId32 " of %zu", e, last, o->ends[e],
                           o->x_rows.n_rows);
        }
        last = o->ends[e];
    }
    return SW_OK;
}

/* Rows of nobody, behind the last end, of a matrix of all rows. */
static void clear_rest(const operands *o, void *matrix, size_t width)
{
    size_t end = o->n_experts == 0 ? 0 : (size_t)o->ends[o->n_experts - 1];
    memset((char *)matrix + end * width * o->bytes, 0, (o->x_rows.n_rows - end) * width * o->bytes);
}

static sw_status find_operands(sw_call *call, bool is_in_out, operands *out, sw_error *err)
{
    const void *x = NULL;
    const void *weight = NULL;
    const void *ends = NULL;

    SW_TRY(sw_call_rows(call, X, 1, &out->x_rows, &x, err));
    SW_TRY(sw_call_rows(call, WEIGHT, 2, &out->weight_rows, &weight, err));
    SW_TRY(sw_call_dense(call, ENDS, &ends, err));
    out->x = x;
    out->weight = weight;
    out->ends = ends;
    out->weight_type = sw_tensor_dtype(call->in[WEIGHT]);
    out->n_experts = (size_t)call->in[WEIGHT]->dims[0];
    out->n_in = (size_t)call->in[X]->dims[1];
    out->n_out = (size_t)call->out[0]->dims[1];
    out->bytes = sw_elem_bytes(call->dtype);
    out->is_in_out = is_in_out;
    return check_ends(out, err);
}

static const char *weight_of(const operands *o, size_t expert)
{
    return o->weight + expert * o->weight_rows.stride * sw_elem_bytes(o->weight_type);
}

static size_t piece_of(size_t length)
{
    size_t piece = 1;

    while (piece <= length / 2)
        piece *= 2;
    return piece;
}

/* y = x W^T + b of a run, or dx = dy W: rows of A and C are the run's. */
static sw_status product_of_run(sw_call *call, const run *of, sw_product *p, sw_error *err)
{
    size_t a_bytes = p->a_stride * sw_elem_bytes(p->a_type);
    size_t c_bytes = p->n * sw_elem_bytes(p->c_type);

    p->a = (const char *)p->a + of->begin * a_bytes;
    p->c = (char *)p->c + of->begin * c_bytes;
    for (size_t left = of->length; left != 0; left -= p->m) {
        p->m = piece_of(left);
        SW_TRY(sw_call_product(call, p, err));
        p->a = (const char *)p->a + p->m * a_bytes;
        p->c = (char *)p->c + p->m * c_bytes;
    }
    return SW_OK;
}

static sw_status forward(sw_call *call, bool is_in_out, sw_error *err)
{
    operands o = {0};
    const void *bias = NULL;

    SW_TRY(find_operands(call, is_in_out, &o, err));
    SW_TRY(sw_call_dense(call, BIAS, &bias, err));
    clear_rest(&o, sw_tensor_data(call->out[0]), o.n_out);
    for (size_t e = 0; e < o.n_experts; e++) {
        run of = run_of(&o, e);
        sw_product p = {
            .n = o.n_out,
            .k = o.n_in,
            .a = o.x,
            .b = weight_of(&o, e),
            .c = sw_tensor_data(call->out[0]),
            .bias = bias == NULL ? NULL : (const char *)bias + e * o.n_out * o.bytes,
            .a_stride = o.x_rows.stride,
            .a_type = call->dtype,
            .b_type = o.weight_type,
            .c_type = call->dtype,
            .b_is_transposed = !is_in_out,
        };
        SW_TRY(product_of_run(call, &of, &p, err));
    }
    return SW_OK;
}

/* dx = dy W */
static sw_status x_backward(sw_call *call, const sw_gradients *g, const operands *o, sw_error *err)
{
    if (!g->adds[X])
        clear_rest(o, g->d_in[X], o->n_in);
    for (size_t e = 0; e < o->n_experts; e++) {
        run of = run_of(o, e);
        sw_product p = {
            .n = o->n_in,
            .k = o->n_out,
            .a = g->d_out,
            .b = weight_of(o, e),
            .c = g->d_in[X],
            .a_stride = o->n_out,
            .a_type = call->dtype,
            .b_type = o->weight_type,
            .c_type = call->dtype,
            .b_is_transposed = o->is_in_out,
            .accumulate = g->adds[X],
        };
        SW_TRY(product_of_run(call, &of, &p, err));
    }
    return SW_OK;
}

/* Rows `begin` on of x and dy, which a product with the run as its K reads both transposed and not. */
static void set_rows(sw_product *p, const sw_gradients *g, const operands *o, size_t begin)
{
    const char *x = o->x + begin * o->x_rows.stride * o->bytes;
    const char *d_y = (const char *)g->d_out + begin * o->n_out * o->bytes;

    p->a = o->is_in_out ? x : d_y;
    p->b = o->is_in_out ? d_y : x;
}

/* dW = dy^T x, or x^T dy; an expert without rows has zeros */
static sw_status weight_backward(sw_call *call, const sw_gradients *g, const operands *o, sw_error *err)
{
    size_t bytes = o->n_in * o->n_out * o->bytes;

    for (size_t e = 0; e < o->n_experts; e++) {
        run of = run_of(o, e);
        sw_product p = {
            .m = o->is_in_out ? o->n_in : o->n_out,
            .n = o->is_in_out ? o->n_out : o->n_in,
            .c = (char *)g->d_in[WEIGHT] + e * bytes,
            .a_stride = o->is_in_out ? o->x_rows.stride : o->n_out,
            .b_stride = o->is_in_out ? o->n_out : o->x_rows.stride,
            .a_type = call->dtype,
            .b_type = call->dtype,
            .c_type = call->dtype,
            .a_is_transposed = true,
            .accumulate = g->adds[WEIGHT],
        };
        if (of.length == 0 && !g->adds[WEIGHT])
            memset(p.c, 0, bytes);
        for (size_t at = of.begin; at < of.begin + of.length; at += p.k) {
            p.k = piece_of(of.begin + of.length - at);
            set_rows(&p, g, o, at);
            SW_TRY(sw_call_product(call, &p, err));
            p.accumulate = true;
        }
    }
    return SW_OK;
}

static void bias_backward(const sw_call *call, const sw_gradients *g, const operands *o)
{
    for (size_t e = 0; e < o->n_experts; e++) {
        run of = run_of(o, e);
        sw_rows_args sums = {
            .n_rows = of.length,
            .width = o->n_out,
            .a = (const char *)g->d_out + of.begin * o->n_out * o->bytes,
            .out = (char *)g->d_in[BIAS] + e * o->n_out * o->bytes,
            .accumulate = g->adds[BIAS],
        };
        sw_kernel_column_sum(sw_call_kernel(call), call->dtype, &sums);
    }
}

static sw_status backward(sw_call *call, const sw_gradients *g, bool is_in_out, sw_error *err)
{
    operands o = {0};

    SW_TRY(find_operands(call, is_in_out, &o, err));
    if (g->d_in[X] != NULL)
        SW_TRY(x_backward(call, g, &o, err));
    if (g->d_in[WEIGHT] != NULL)
        SW_TRY(weight_backward(call, g, &o, err));
    if (g->d_in[BIAS] != NULL)
        bias_backward(call, g, &o);
    return SW_OK;
}

sw_status sw_expert_linear_forward(sw_call *call, sw_error *err)
{
    return forward(call, false, err);
}

sw_status sw_expert_linear_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return backward(call, g, false, err);
}

sw_status sw_expert_linear_in_out_forward(sw_call *call, sw_error *err)
{
    return forward(call, true, err);
}

sw_status sw_expert_linear_in_out_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return backward(call, g, true, err);
}
