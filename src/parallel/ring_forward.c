/* The ring forward (parallel/ring.h): results of blocks are merged by their lse, sinks enter at the end. */
#include "base/status.h"
#include "kernel/attention_merge.h"
#include "parallel/attention_shape.h"
#include "parallel/ring.h"

/* What all ranks have to know of each other: ranges of positions. */
static void share_tokens(sw_ring_call *a, const char *own_block)
{
    const sw_group *group = a->ring->group;
    const sw_along along = {1, (uint64_t)group->size * sizeof(sw_ring_tokens) / sizeof(int32_t), 1};
    const sw_ring_mask mask = {a->args.is_causal, a->args.window};
    const int32_t *k_positions = sw_ring_positions(a, own_block);
    sw_ring_tokens own = sw_ring_no_tokens();
    size_t n = a->frame.n_queries;

    for (size_t row = 0; row < a->frame.n_batch; row++)
        sw_ring_tokens_add(&own, a->frame.q_positions + row * n, k_positions + row * n, n);
    sw_all_gather(group, &along, SW_DTYPE_I32, &own, a->tokens);
    a->n_steps = sw_ring_reach(&mask, a->tokens, group->size, a->reach);
}

typedef struct forward {
    char *blocks[2];
    void *workspace;
    void *part; /* out and lse of a block */
    void *part_lse;
    sw_attention_merge_args merge;
} forward;

static sw_status take_forward(const sw_ring_call *a, sw_step *step, forward *f, sw_error *err)
{
    const sw_attention_args *frame = &a->frame;
    size_t rows = frame->n_batch * frame->n_queries * frame->n_heads;
    size_t bytes = 0;

    SW_TRY(sw_ring_take(a, step, 2, f->blocks, err));
    SW_TRY(sw_node_take(step, rows * frame->v_width * a->width, &f->part, err));
    SW_TRY(sw_node_take(step, rows * a->width, &f->part_lse, err));
    f->merge = (sw_attention_merge_args){frame->n_batch, frame->n_queries,  frame->n_heads,
                                         frame->v_width, frame->out.values, a->lse,
                                         f->part,        f->part_lse,       frame->sinks};
    SW_TRY(sw_attention_workspace(sw_step_kernel(step), a->dtype, frame, false, &bytes, err));
    return sw_node_take(step, bytes, &f->workspace, err);
}

/* A block into `out`: the own one begins it, others are merged. */
static void attend(const sw_ring_call *a, const sw_kernel *kernel, const forward *f, uint32_t step,
                   const char *block)
{
    sw_attention_args args = sw_ring_args(a, block);

    if (step > 0) {
        args.out.values = f->part;
        args.lse = f->part_lse;
    }
    sw_ring_compute(a, kernel, sw_kernel_attention, &args, f->workspace);
    if (step > 0)
        sw_kernel_attention_merge(kernel, a->dtype, &f->merge);
}

static void run_forward(const sw_ring_call *a, const sw_kernel *kernel, const forward *f)
{
    for (uint32_t s = 0; s <= a->n_steps; s++) {
        const char *block = f->blocks[s % 2];
        if (s < a->n_steps)
            sw_ring_pass(a, s, block, f->blocks[(s + 1) % 2]);
        if (sw_ring_holds(a, s) && (s == 0 || sw_ring_is_seen(a, s)))
            attend(a, kernel, f, s, block);
        sw_pending_wait(a->ring->blocks);
    }
    if (a->frame.sinks != NULL)
        sw_kernel_attention_sinks(kernel, a->dtype, &f->merge);
}

/* What stays until the backward. */
static sw_status take_kept(sw_ring_call *a, sw_step *step, const sw_tensor *q, sw_error *err)
{
    uint32_t n = a->ring->group->size;
    void *memory = NULL;

    SW_TRY(sw_node_take(step, (size_t)(q->dims[0] * q->dims[1] * q->dims[2]) * a->width, &a->lse, err));
    SW_TRY(sw_node_take(step, n * sizeof *a->tokens, &memory, err));
    a->tokens = memory;
    SW_TRY(sw_node_take(step, n * sizeof *a->reach, &memory, err));
    a->reach = memory;
    return SW_OK;
}

sw_status sw_ring_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                          sw_error *err)
{
    sw_ring_call *a = context;
    const uint64_t dims[] = {in[0]->dims[0], in[0]->dims[1], in[0]->dims[2], in[2]->dims[3]};
    forward f;

    SW_TRY(sw_node_tensor(step, a->dtype, 4, dims, out, err));
    if (dims[2] == 0)
        return SW_OK; /* ranks without heads */
    SW_TRY(take_kept(a, step, in[0], err));
    sw_stack_mark mark = sw_stack_top(sw_step_stack(step));
    SW_TRY(sw_attention_frame(step, in, &a->args, &a->frame, err));
    a->frame.lse = a->lse;
    a->frame.out = sw_heads_dense(sw_tensor_data(*out), dims[1], dims[2], dims[3]);
    SW_TRY(take_forward(a, step, &f, err));
    sw_ring_pack(a, in, f.blocks[0]);
    share_tokens(a, f.blocks[0]);
    run_forward(a, sw_step_kernel(step), &f);
    sw_stack_release(sw_step_stack(step), mark);
    return SW_OK;
}
