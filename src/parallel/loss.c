/* Cross-entropy on a vocabulary that is cut over ranks (parallel/loss.h). */
#include "parallel/loss.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/elementwise.h"
#include "kernel/loss.h"
#include "kernel/softmax.h"
#include "parallel/node.h"

typedef struct loss {
    sw_vocabulary_part part;
    double factor;
    void *max; /* [R], over all ranks, as the next two */
    void *sum;
    void *target_x;
} loss;

static size_t rows_of(const sw_tensor *targets)
{
    return (size_t)sw_tensor_elems(targets);
}

static sw_status loss_args(const loss *l, sw_step *step, const sw_tensor *const *in, sw_loss_args *out,
                           sw_error *err)
{
    const void *targets = NULL;
    const sw_tensor *logits = in[0];

    *out = (sw_loss_args){.n_rows = rows_of(in[1]),
                          .width = (size_t)logits->dims[logits->n_dims - 1],
                          .first = (int64_t)l->part.first,
                          .factor = l->factor,
                          .max = l->max,
                          .sum = l->sum,
                          .target_x = l->target_x};
    SW_TRY(sw_node_dense(step, logits, &out->x, err));
    SW_TRY(sw_node_dense(step, in[1], &targets, err));
    out->targets = targets;
    return SW_OK;
}

static sw_status check_shapes(const loss *l, const sw_tensor *logits, const sw_tensor *targets, sw_error *err)
{
    bool is_same = logits->n_dims == targets->n_dims + 1 && sw_tensor_dtype(targets) == SW_DTYPE_I32;
    char shape[2][SW_SHAPE_TEXT];

    SW_TRY(sw_node_check_real("logits", logits, NULL, err));
    for (uint32_t d = 0; is_same && d < targets->n_dims; d++)
        is_same = logits->dims[d] == targets->dims[d];
    sw_shape_text(logits->n_dims, logits->dims, shape[0]);
    sw_shape_text(targets->n_dims, targets->dims, shape[1]);
    if (!is_same) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give an I32 target for each row of logits",
                       "logits %s with targets %s", shape[0], shape[1]);
    }
    uint64_t width = logits->dims[logits->n_dims - 1];
    if (width > l->part.extent || (width > 0 && l->part.first > l->part.extent - width)) {
        return SW_FAIL(err, SW_E_ARGUMENT, "give the part that the plan gives this rank",
                       "%" PRIu64 " columns from token %" PRIu64 " on, the vocabulary has %" PRIu64, width,
                       l->part.first, l->part.extent);
    }
    return SW_OK;
}

static sw_status check_targets(const loss *l, const sw_loss_args *args, sw_error *err)
{
    for (size_t i = 0; i < args->n_rows; i++) {
        if (args->targets[i] >= 0 && (uint64_t)args->targets[i] >= l->part.extent) {
            return SW_FAIL(err, SW_E_ARGUMENT, "check the token file and the model's vocabulary",
                           "target %" PRId32 " of row %zu, the vocabulary has %" PRIu64, args->targets[i], i,
                           l->part.extent);
        }
    }
    return SW_OK;
}

/* Maximum first, since sums are relative to it; then sums and target logits together. */
static void reduce_rows(const loss *l, const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args)
{
    sw_softmax_args rows = {.n_rows = args->n_rows, .width = args->width, .x = args->x, .out = args->max};

    sw_kernel_row_max(kernel, dtype, &rows);
    sw_all_reduce_max(l->part.group, args->n_rows, dtype, args->max, args->max);
    rows.max = args->max;
    rows.out = args->sum;
    sw_kernel_row_exp_sum(kernel, dtype, &rows);
    sw_kernel_target_logits(kernel, dtype, args);
    sw_all_reduce(l->part.group, 2 * (uint64_t)args->n_rows, dtype, args->sum, args->sum);
}

/* A scalar: whole over the vocabulary's axes, a summand over those that cut rows. */
static sw_status scalar_layout(sw_step *step, const sw_tensor *logits, const sw_tensor_layout **out,
                               sw_error *err)
{
    const sw_tensor_layout *given = logits->layout;
    void *memory = NULL;

    *out = NULL;
    if (given == NULL)
        return SW_OK;
    SW_TRY(sw_node_take(step, sizeof *given, &memory, err));
    sw_tensor_layout *made = memory;
    *made = *given;
    made->n_dims = 0;
    for (uint32_t a = 0; a < given->grid.n_axes; a++) {
        bool cuts = given->on[a].kind == SW_PLACE_SHARD;
        bool cuts_rows = cuts && given->on[a].dim != (int32_t)given->n_dims - 1;
        made->on[a] = (sw_placement){.kind = SW_PLACE_REPLICATE};
        made->is_summed[a] = given->is_summed[a] || cuts_rows;
    }
    *out = made;
    return SW_OK;
}

static void set_scalar(const sw_tensor *scalar, double value)
{
    if (sw_tensor_dtype(scalar) == SW_DTYPE_F64)
        *(double *)sw_tensor_data(scalar) = value;
    else
        *(float *)sw_tensor_data(scalar) = (float)value;
}

static double scalar_of(sw_dtype dtype, const void *value)
{
    return dtype == SW_DTYPE_F64 ? *(const double *)value : (double)*(const float *)value;
}

static sw_status loss_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                              sw_error *err)
{
    loss *l = context;
    sw_stack *stack = sw_step_stack(step);
    sw_kernel *kernel = sw_step_kernel(step);
    sw_dtype dtype = sw_tensor_dtype(in[0]);
    size_t bytes = rows_of(in[1]) * sw_elem_bytes(dtype);
    sw_loss_args args;

    SW_TRY(check_shapes(l, in[0], in[1], err));
    SW_TRY(sw_node_tensor(step, dtype, 0, NULL, out, err));
    SW_TRY(scalar_layout(step, in[0], &(*out)->layout, err));
    SW_TRY(sw_node_take(step, bytes, &l->max, err));
    SW_TRY(sw_node_take(step, 2 * bytes, &l->sum, err));
    l->target_x = (char *)l->sum + bytes;
    sw_stack_mark mark = sw_stack_top(stack);
    SW_TRY(loss_args(l, step, in, &args, err));
    SW_TRY(check_targets(l, &args, err));
    SW_TRY(sw_node_take(step, bytes, &args.loss, err));
    reduce_rows(l, kernel, dtype, &args);
    sw_kernel_loss_of_sums(dtype, &args);
    set_scalar(*out, l->factor * sw_kernel_sum(kernel, dtype, args.loss, args.n_rows));
    sw_stack_release(stack, mark);
    return SW_OK;
}

/* No traffic: softmax of the columns that are here, minus one at the target where it is here. */
static sw_status loss_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const loss *l = context;
    sw_dtype dtype = sw_tensor_dtype(back->in[0]);
    sw_loss_args args;

    if (back->d_in[0] == NULL)
        return SW_OK;
    SW_TRY(loss_args(l, step, back->in, &args, err));
    args.factor *= scalar_of(dtype, back->d_out);
    args.d_x = back->d_in[0];
    sw_kernel_cross_entropy_back(sw_step_kernel(step), dtype, &args);
    return SW_OK;
}

static const sw_custom loss_node = {"loss parallel", loss_forward, loss_backward};

sw_tensor *sw_loss_parallel(sw_step *step, const sw_vocabulary_part *part, const sw_tensor *logits,
                            const sw_tensor *targets, double factor)
{
    const sw_tensor *in[] = {logits, targets};
    loss *l = sw_node_context(step, sizeof *l);

    if (l == NULL)
        return NULL;
    *l = (loss){.part = *part, .factor = factor};
    return sw_step_custom(step, &loss_node, l, in, SW_COUNT(in));
}

double sw_loss_factor(const sw_group *group, const int32_t *targets, uint64_t n, uint64_t n_before)
{
    uint64_t count = n_before;

    for (uint64_t i = 0; i < n; i++)
        count += targets[i] >= 0;
    sw_all_reduce(group, 1, SW_DTYPE_U64, &count, &count);
    return count == 0 ? 0 : 1 / (double)count;
}
