/* Rows by number: embedding, gather, scatter, and the largest of a row. */
#include "kernel/rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "tensor/rows_of_table.h"

/* out[r] = table[ids[r]] of inputs `table` and `ids` */
static sw_status gather(sw_call *call, uint32_t table, uint32_t ids, sw_error *err)
{
    const void *numbers = NULL;
    sw_gather_args args = {.n_rows = sw_call_elems(call, ids),
                           .n_table = (size_t)call->in[table]->dims[0],
                           .width = (size_t)call->in[table]->dims[1],
                           .table_type = sw_tensor_dtype(call->in[table]),
                           .first = call->args.first,
                           .out = sw_tensor_data(call->out[0])};

    SW_TRY(sw_call_dense(call, table, &args.table, err));
    SW_TRY(sw_call_dense(call, ids, &numbers, err));
    args.ids = numbers;
    sw_kernel_gather(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* d_table[ids[r]] += d_out[r] */
static sw_status gather_back(sw_call *call, const sw_gradients *g, uint32_t table, uint32_t ids,
                             sw_error *err)
{
    const void *numbers = NULL;
    sw_gather_args args = {.n_rows = sw_call_elems(call, ids),
                           .n_table = (size_t)call->in[table]->dims[0],
                           .width = (size_t)call->in[table]->dims[1],
                           .table_type = call->dtype,
                           .first = call->args.first,
                           .sums = g->d_in[table],
                           .rows = g->d_out};

    SW_TRY(sw_call_dense(call, ids, &numbers, err));
    args.ids = numbers;
    if (!g->adds[table])
        memset(g->d_in[table], 0, sw_call_bytes(call, table));
    sw_kernel_scatter_add(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

sw_status sw_embedding_forward(sw_call *call, sw_error *err)
{
    return gather(call, 1, 0, err);
}

sw_status sw_embedding_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return gather_back(call, g, 1, 0, err);
}

sw_status sw_gather_rows_forward(sw_call *call, sw_error *err)
{
    return gather(call, 0, 1, err);
}

sw_status sw_gather_rows_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    return gather_back(call, g, 0, 1, err);
}

/* Scatter: x, weights, ids; what both directions read. */
static sw_status scatter_args(sw_call *call, sw_gather_args *out, sw_error *err)
{
    const void *ids = NULL;

    *out = (sw_gather_args){.n_rows = (size_t)call->in[0]->dims[0],
                            .n_table = (size_t)call->out[0]->dims[0],
                            .width = (size_t)call->in[0]->dims[1],
                            .table_type = call->dtype};
    SW_TRY(sw_call_dense(call, 0, &out->rows, err));
    SW_TRY(sw_call_dense(call, 1, &out->weights, err));
    SW_TRY(sw_call_dense(call, 2, &ids, err));
    out->ids = ids;
    return SW_OK;
}

sw_status sw_scatter_rows_forward(sw_call *call, sw_error *err)
{
    sw_gather_args args;

    SW_TRY(scatter_args(call, &args, err));
    args.sums = sw_tensor_data(call->out[0]);
    memset(args.sums, 0, args.n_table * args.width * sw_elem_bytes(call->dtype));
    sw_kernel_scatter_add(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* d_x[r] = weights[r] * d_y[ids[r]],  d_weights[r] = x[r] . d_y[ids[r]] */
sw_status sw_scatter_rows_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    sw_gather_args args;
    void *taken = NULL; /* d_y[ids[r]] */

    SW_TRY(scatter_args(call, &args, err));
    SW_TRY(sw_call_workspace(call, sw_call_bytes(call, 0), &taken, err));
    args.table = g->d_out;
    args.out = taken;
    sw_kernel_gather(sw_call_kernel(call), call->dtype, &args);
    if (g->d_in[1] != NULL) {
        sw_rows_args dot = {args.n_rows, args.width, taken, args.rows, g->d_in[1], false};
        sw_kernel_row_dot(sw_call_kernel(call), call->dtype, &dot);
    }
    if (g->d_in[0] != NULL && args.weights != NULL) {
        sw_rows_args scale = {args.n_rows, args.width, taken, args.weights, g->d_in[0], false};
        sw_kernel_row_scale(sw_call_kernel(call), call->dtype, &scale);
    } else if (g->d_in[0] != NULL) {
        memcpy(g->d_in[0], taken, sw_call_bytes(call, 0));
    }
    return SW_OK;
}

/* Is there enough to choose from, and do groups divide the row? */
static sw_status check_choice(const sw_op_args *args, uint64_t width, sw_error *err)
{
    uint64_t n_groups = args->n_groups < 2 ? 1 : args->n_groups;
    uint64_t n_kept = n_groups == 1 ? 1 : args->n_kept;

    if (width % n_groups != 0 || n_kept > n_groups) {
        return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes",
                       "%" PRIu64 " of %" PRIu64 " groups of a row of %" PRIu64, n_kept, n_groups, width);
    }
    if (args->extent > n_kept * (width / n_groups)) {
        return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes", "the %" PRIu64 " largest of %" PRIu64,
                       args->extent, n_kept * (width / n_groups));
    }
    return SW_OK;
}

sw_status sw_top_k_forward(sw_call *call, sw_error *err)
{
    const sw_tensor *x = call->in[0];
    uint64_t width = x->dims[x->n_dims - 1];
    sw_top_k_args args = {.n_rows = sw_call_out_rows(call, 1).n_rows,
                          .width = (size_t)width,
                          .count = (size_t)call->args.extent,
                          .n_groups = (size_t)call->args.n_groups,
                          .n_kept = (size_t)call->args.n_kept,
                          .group_best = (size_t)call->args.group_best,
                          .indices = sw_tensor_data(call->out[1]),
                          .values = sw_tensor_data(call->out[0])};

    SW_TRY(check_choice(&call->args, width, err));
    SW_TRY(sw_call_dense(call, 0, &args.x, err));
    SW_TRY(sw_call_dense(call, 1, &args.correction, err));
    sw_kernel_top_k(sw_call_kernel(call), call->dtype, &args);
    return SW_OK;
}

/* Each row's gradients to where its values came from. No two of a row came from one place. */
sw_status sw_top_k_backward(sw_call *call, const sw_gradients *g, sw_error *err)
{
    const int32_t *indices = sw_tensor_data(call->out[1]);
    sw_tensor_rows taken = sw_call_out_rows(call, 1);
    size_t width = (size_t)call->in[0]->dims[call->in[0]->n_dims - 1];

    (void)err;
    if (!g->adds[0])
        memset(g->d_in[0], 0, sw_call_bytes(call, 0));
    for (size_t i = 0; i < taken.n_rows * taken.width; i++) {
        size_t at = i / taken.width * width + (size_t)indices[i];
        if (call->dtype == SW_DTYPE_F64)
            ((double *)g->d_in[0])[at] += ((const double *)g->d_out)[i];
        else
            ((float *)g->d_in[0])[at] += ((const float *)g->d_out)[i];
    }
    return SW_OK;
}
