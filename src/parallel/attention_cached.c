/*
 * Attention of generation over ranks (parallel/attention.h): each rank looks at its part of the cache, and
 * what they found is put together in the order of the ranks, so that all have the same bits.
 */
#include <string.h>

#include "base/status.h"
#include "kernel/attention_merge.h"
#include "parallel/attention.h"
#include "parallel/attention_shape.h"

typedef struct cached {
    const sw_group *group;
    sw_attend_args args;
} cached;

/* Elements of what a rank found: out and lse. */
typedef struct found_size {
    size_t out;
    size_t all;
} found_size;

static sw_status look(const cached *c, sw_step *step, const sw_tensor *const *in, sw_attention_args *frame,
                      void *found, sw_error *err)
{
    sw_dtype dtype = sw_tensor_dtype(in[0]);
    size_t n_out = frame->n_batch * frame->n_queries * frame->n_heads * frame->v_width;
    const void *keys = NULL;
    const void *values = NULL;
    const void *positions = NULL;
    void *workspace = NULL;
    size_t bytes = 0;

    SW_TRY(sw_node_dense(step, in[1], &keys, err));
    SW_TRY(sw_node_dense(step, in[2], &values, err));
    SW_TRY(sw_node_dense(step, c->args.k_positions, &positions, err));
    frame->k = sw_heads_read(keys, frame->n_keys, frame->n_kv_heads, frame->width);
    frame->v = sw_heads_read(values, frame->n_keys, frame->n_kv_heads, frame->v_width);
    frame->k_positions = positions;
    frame->sinks = NULL; /* they enter at the end */
    frame->out = sw_heads_dense(found, frame->n_queries, frame->n_heads, frame->v_width);
    frame->lse = (char *)found + n_out * sw_elem_bytes(dtype);
    SW_TRY(sw_attention_workspace(sw_step_kernel(step), dtype, frame, false, &bytes, err));
    SW_TRY(sw_node_take(step, bytes, &workspace, err));
    sw_kernel_attention(sw_step_kernel(step), dtype, frame, workspace);
    return SW_OK;
}

/* All that was found, one rank behind the other; the first becomes the whole. */
static void merge(const cached *c, sw_step *step, const sw_attention_args *frame, const void *sinks,
                  found_size size, char *all, sw_dtype dtype)
{
    size_t width = sw_elem_bytes(dtype);
    sw_attention_merge_args args = {.n_batch = frame->n_batch,
                                    .n_queries = frame->n_queries,
                                    .n_heads = frame->n_heads,
                                    .v_width = frame->v_width,
                                    .out = all,
                                    .lse = all + size.out * width,
                                    .sinks = sinks};

    for (uint32_t m = 1; m < c->group->size; m++) {
        args.part = all + m * size.all * width;
        args.part_lse = all + (m * size.all + size.out) * width;
        sw_kernel_attention_merge(sw_step_kernel(step), dtype, &args);
    }
    if (sinks != NULL)
        sw_kernel_attention_sinks(sw_step_kernel(step), dtype, &args);
}

static sw_status cached_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                                sw_error *err)
{
    const cached *c = context;
    const uint64_t dims[] = {in[0]->dims[0], in[0]->dims[1], in[0]->dims[2], in[2]->dims[3]};
    sw_dtype dtype = sw_tensor_dtype(in[0]);
    size_t width = sw_elem_bytes(dtype);
    size_t rows = (size_t)(dims[0] * dims[1] * dims[2]);
    found_size size = {rows * (size_t)dims[3], rows * (size_t)(dims[3] + 1)};
    const sw_along along = {1, (uint64_t)size.all * c->group->size, 1};
    sw_attention_args frame;
    void *found = NULL;
    void *all = NULL;

    SW_TRY(sw_node_tensor(step, dtype, 4, dims, out, err));
    if (rows == 0)
        return SW_OK;
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_node_take(step, size.all * width, &found, err));
    SW_TRY(sw_node_take(step, size.all * width * c->group->size, &all, err));
    SW_TRY(sw_attention_frame(step, in, &c->args, &frame, err));
    const void *sinks = frame.sinks;
    SW_TRY(look(c, step, in, &frame, found, err));
    sw_all_gather(c->group, &along, dtype, found, all);
    merge(c, step, &frame, sinks, size, all, dtype);
    memcpy(sw_tensor_data(*out), all, size.out * width);
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}

static sw_status cached_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    (void)context;
    (void)step;
    (void)back;
    return SW_FAIL(err, SW_E_ARGUMENT, "train with another form", "attention over a cache has no backward");
}

static const sw_custom cached_node = {"attention over a cache", cached_forward, cached_backward};

sw_tensor *sw_attention_cached(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                               const sw_tensor *v, const sw_attend_args *args)
{
    const sw_tensor *in[] = {q, k, v};
    sw_attend_args local = *args;

    if (!sw_attention_fits(step, "attention over a cache", in, args, true) ||
        !sw_attention_local(step, in, &local))
        return NULL;
    cached *c = sw_node_context(step, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (cached){group, local};
    return sw_attention_result(step, q, sw_step_custom(step, &cached_node, c, in, SW_COUNT(in)));
}
