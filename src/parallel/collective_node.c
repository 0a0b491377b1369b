/* Collectives as nodes of the tape (parallel/collective_node.h). */
#include "parallel/collective_node.h"

#include <string.h>

#include "base/status.h"
#include "parallel/node.h"
#include "tensor/copy.h"

typedef struct collective {
    const sw_group *group;
    uint32_t dim;
    sw_sum_way way;
    uint32_t repeats;
} collective;

static sw_tensor *run(sw_step *step, const sw_custom *custom, collective given, const sw_tensor *x)
{
    collective *c = sw_node_context(step, sizeof *c);

    if (c == NULL)
        return NULL;
    *c = given;
    return sw_step_custom(step, custom, c, &x, 1);
}

static size_t bytes_of(const sw_tensor *x)
{
    return (size_t)sw_tensor_elems(x) * sw_elem_bytes(sw_tensor_dtype(x));
}

/* ---- gather ---- */

/* The dims of `x`, which has this rank's part, around dim `dim` of the whole. */
static sw_along along_of(const collective *c, const sw_tensor *x)
{
    sw_along along = {1, x->dims[c->dim] * c->group->size, 1};

    for (uint32_t d = 0; d < x->n_dims; d++) {
        if (d < c->dim)
            along.n_outer *= x->dims[d];
        else if (d > c->dim)
            along.n_inner *= x->dims[d];
    }
    return along;
}

static sw_status gather_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                sw_error *err)
{
    const collective *c = context;
    const void *values = NULL;
    uint64_t dims[SW_TENSOR_MAX_DIMS];

    memcpy(dims, in[0]->dims, sizeof dims);
    dims[c->dim] *= c->group->size;
    SW_TRY(sw_node_tensor(step, sw_tensor_dtype(in[0]), in[0]->n_dims, dims, out, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, in[0], &values, err));
    sw_along along = along_of(c, in[0]);
    sw_all_gather(c->group, &along, sw_tensor_dtype(in[0]), values, sw_tensor_data(*out));
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

static sw_status gather_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const collective *c = context;
    sw_along along = along_of(c, back->in[0]);

    (void)step;
    (void)err;
    sw_reduce_scatter(c->group, &along, sw_tensor_dtype(back->out), back->d_out, back->d_in[0]);
    return SW_OK;
}

static const sw_custom gather_custom = {"gather", gather_forward, gather_backward};

sw_tensor *sw_gather_node(sw_step *step, const sw_group *group, const sw_tensor *x, uint32_t dim)
{
    return run(step, &gather_custom, (collective){.group = group, .dim = dim}, x);
}

/* ---- sum ---- */

/* The elements stay where they are, if they lie together. */
static sw_status pass_on(sw_step *step, const sw_tensor *x, sw_tensor **out, sw_error *err)
{
    void *values = sw_tensor_is_dense(x) ? sw_tensor_data(x) : NULL;

    SW_TRY(sw_tensor_create(out, sw_step_stack(step), sw_tensor_dtype(x), x->n_dims, x->dims, values, err));
    if (values == NULL)
        sw_copy_to_dense(x, sw_tensor_data(*out));
    return SW_OK;
}

static sw_status sum_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                             sw_error *err)
{
    const collective *c = context;
    const sw_tensor *x = in[0];
    sw_dtype dtype = sw_tensor_dtype(x);
    const void *values = NULL;

    if (c->way == SW_SUM_BACKWARD)
        return pass_on(step, x, out, err);
    SW_TRY(sw_node_tensor(step, dtype, x->n_dims, x->dims, out, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, x, &values, err));
    sw_all_reduce(c->group, sw_tensor_elems(x), dtype, values, sw_tensor_data(*out));
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

static sw_status sum_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const collective *c = context;
    const sw_tensor *out = back->out;

    (void)step;
    (void)err;
    if (c->way == SW_SUM_FORWARD)
        memcpy(back->d_in[0], back->d_out, bytes_of(out));
    else
        sw_all_reduce(c->group, sw_tensor_elems(out), sw_tensor_dtype(out), back->d_out, back->d_in[0]);
    return SW_OK;
}

static const sw_custom sum_custom = {"sum over ranks", sum_forward, sum_backward};

sw_tensor *sw_sum_node(sw_step *step, const sw_group *group, const sw_tensor *x, sw_sum_way way)
{
    return run(step, &sum_custom, (collective){.group = group, .way = way}, x);
}

/* ---- once ---- */

static sw_status once_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                              sw_error *err)
{
    (void)context;
    return pass_on(step, in[0], out, err);
}

static sw_status once_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const collective *c = context;

    (void)step;
    (void)err;
    if (c->group->index == 0)
        memcpy(back->d_in[0], back->d_out, bytes_of(back->out));
    else
        memset(back->d_in[0], 0, bytes_of(back->out));
    return SW_OK;
}

static const sw_custom once_custom = {"once over ranks", once_forward, once_backward};

sw_tensor *sw_once_node(sw_step *step, const sw_group *group, const sw_tensor *x)
{
    return run(step, &once_custom, (collective){.group = group}, x);
}

/* ---- heads and tokens ---- */

/* Tokens and heads of all ranks, of a tensor [B, tokens, heads, D]. */
static sw_across across_of(const sw_tensor *x, uint64_t n_tokens, uint64_t n_heads)
{
    return (sw_across){x->dims[0], n_tokens, 1, n_heads, x->dims[3]};
}

/* Every row of D elements `repeats` times. */
static void repeat_rows(const sw_tensor *x, uint32_t repeats, const char *from, char *to)
{
    size_t row = (size_t)x->dims[3] * sw_elem_bytes(sw_tensor_dtype(x));
    uint64_t n_rows = row == 0 ? 0 : sw_tensor_elems(x) / x->dims[3];

    for (uint64_t i = 0; i < n_rows * repeats; i++)
        memcpy(to + i * row, from + i / repeats * row, row);
}

static sw_status heads_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                               sw_error *err)
{
    const collective *c = context;
    const sw_tensor *x = in[0];
    const void *values = NULL;
    void *repeated = NULL;
    sw_across across = across_of(x, x->dims[1] * c->group->size, x->dims[2] * c->repeats);
    uint64_t dims[] = {x->dims[0], across.first, across.second / c->group->size, x->dims[3]};

    SW_TRY(sw_node_tensor(step, sw_tensor_dtype(x), 4, dims, out, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, x, &values, err));
    if (c->repeats > 1) {
        SW_TRY(sw_node_take(step, bytes_of(x) * c->repeats, &repeated, err));
        repeat_rows(x, c->repeats, values, repeated);
        values = repeated;
    }
    sw_all_to_all_back(c->group, &across, sw_tensor_dtype(x), values, sw_tensor_data(*out));
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

/* Add the copies of each row, in their order. */
static sw_status add_repeats(sw_step *step, const sw_tensor *x, uint32_t repeats, const char *from, char *to,
                             sw_error *err)
{
    size_t row = (size_t)x->dims[3] * sw_elem_bytes(sw_tensor_dtype(x));
    uint64_t n_rows = row == 0 ? 0 : sw_tensor_elems(x) / x->dims[3];
    void *memory = NULL;

    SW_TRY(sw_node_take(step, repeats * sizeof(const void *), &memory, err));
    const void **parts = memory;
    for (uint64_t i = 0; i < n_rows; i++) {
        for (uint32_t j = 0; j < repeats; j++)
            parts[j] = from + (i * repeats + j) * row;
        sw_combine(to + i * row, parts, repeats, (size_t)x->dims[3], sw_tensor_dtype(x), SW_COMBINE_SUM);
    }
    return SW_OK;
}

static sw_status heads_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const collective *c = context;
    const sw_tensor *x = back->in[0];
    sw_dtype dtype = sw_tensor_dtype(x);
    sw_across across = across_of(x, x->dims[1] * c->group->size, x->dims[2] * c->repeats);
    void *repeated = NULL;

    if (c->repeats == 1) {
        sw_all_to_all(c->group, &across, dtype, back->d_out, back->d_in[0]);
        return SW_OK;
    }
    SW_TRY(sw_node_take(step, bytes_of(x) * c->repeats, &repeated, err));
    sw_all_to_all(c->group, &across, dtype, back->d_out, repeated);
    return add_repeats(step, x, c->repeats, repeated, back->d_in[0], err);
}

static const sw_custom heads_custom = {"heads to ranks", heads_forward, heads_backward};

sw_tensor *sw_heads_node(sw_step *step, const sw_group *group, const sw_tensor *x, uint32_t repeats)
{
    return run(step, &heads_custom, (collective){.group = group, .repeats = repeats}, x);
}

static sw_status tokens_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                sw_error *err)
{
    const collective *c = context;
    const sw_tensor *x = in[0];
    const void *values = NULL;
    sw_across across = across_of(x, x->dims[1], x->dims[2] * c->group->size);
    uint64_t dims[] = {x->dims[0], x->dims[1] / c->group->size, across.second, x->dims[3]};

    SW_TRY(sw_node_tensor(step, sw_tensor_dtype(x), 4, dims, out, err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_dense(step, x, &values, err));
    sw_all_to_all(c->group, &across, sw_tensor_dtype(x), values, sw_tensor_data(*out));
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

static sw_status tokens_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    const collective *c = context;
    const sw_tensor *x = back->in[0];
    sw_across across = across_of(x, x->dims[1], x->dims[2] * c->group->size);

    (void)step;
    (void)err;
    sw_all_to_all_back(c->group, &across, sw_tensor_dtype(x), back->d_out, back->d_in[0]);
    return SW_OK;
}

static const sw_custom tokens_custom = {"tokens to ranks", tokens_forward, tokens_backward};

sw_tensor *sw_tokens_node(sw_step *step, const sw_group *group, const sw_tensor *x)
{
    return run(step, &tokens_custom, (collective){.group = group}, x);
}
