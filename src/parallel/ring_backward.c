/*
 * The ring backward (parallel/ring.h): blocks go round once more, and the gradients of each travel one step
 * behind it. Every rank adds what it found; the last rank that sees a block sends its sum home. What a rank
 * finds is computed while the sum so far comes.
 */
#include <string.h>

#include "base/status.h"
#include "kernel/elementwise.h"
#include "parallel/attention_shape.h"
#include "parallel/ring.h"

typedef struct backward {
    char *blocks[2];
    char *found;    /* of the block of this step by this rank */
    char *sent;     /* the sum so far, on its way */
    char *received; /* two: the sum so far of this step's block, and that of the own block, come home */
    void *workspace;
    void *d_q;
} backward;

static size_t gradient_elems(const sw_ring_call *a)
{
    return (size_t)(a->size.keys + a->size.values);
}

static sw_status take_backward(sw_ring_call *a, sw_step *step, const sw_custom_back *back, backward *b,
                               sw_error *err)
{
    size_t bytes = gradient_elems(a) * a->width;
    size_t q_bytes = (size_t)sw_tensor_elems(back->in[0]) * a->width;
    void *memory = NULL;

    SW_TRY(sw_ring_take(a, step, 2, b->blocks, err));
    SW_TRY(sw_node_take(step, 4 * bytes, &memory, err));
    b->found = memory;
    b->sent = b->found + bytes;
    b->received = b->sent + bytes;
    b->d_q = back->d_in[0];
    if (b->d_q == NULL)
        SW_TRY(sw_node_take(step, q_bytes, &b->d_q, err));
    memset(b->d_q, 0, q_bytes);
    if (back->d_in[3] != NULL)
        memset(back->d_in[3], 0, a->frame.n_heads * a->width);
    SW_TRY(sw_attention_workspace(sw_step_kernel(step), a->dtype, &a->frame, true, &bytes, err));
    return sw_node_take(step, bytes, &b->workspace, err);
}

/* Add to d_q, and leave gradients of the block in `found`. Sinks come with the own block. */
static void find_gradients(const sw_ring_call *a, const sw_kernel *kernel, const backward *b, uint32_t step,
                           void *d_sinks, const char *block)
{
    sw_attention_args args = sw_ring_args(a, block);

    memset(b->found, 0, gradient_elems(a) * a->width);
    if (!sw_ring_is_seen(a, step) && step > 0)
        return;
    args.sinks = step == 0 ? a->frame.sinks : NULL;
    args.d_sinks = step == 0 ? d_sinks : NULL;
    args.adds = true;
    args.d_q = sw_heads_dense(b->d_q, args.n_queries, args.n_heads, args.width);
    args.d_k = sw_heads_dense(b->found, args.n_keys, args.n_kv_heads, args.width);
    args.d_v = sw_heads_dense(b->found + a->size.keys * a->width, args.n_keys, args.n_kv_heads, args.v_width);
    sw_ring_compute(a, kernel, sw_kernel_attention_back, &args, b->workspace);
}

/* Who sends the own block's gradients home in this step, a step after it was there; the own rank: nobody. */
static uint32_t comes_home_from(const sw_ring_call *a, uint32_t step)
{
    uint32_t reach = a->reach[a->ring->group->index];
    return step > 1 && reach == step - 1 ? sw_ring_ahead(a, reach) : a->ring->group->index;
}

/* Where in `received` the sum from a member stands: behind those from lower members. */
static char *place_from(const sw_ring_call *a, const backward *b, uint32_t step, uint32_t member)
{
    uint32_t home = comes_home_from(a, step);
    uint32_t other = member == home ? sw_ring_before(a) : home;
    bool has_other = member == home ? sw_ring_holds(a, step) : home != a->ring->group->index;
    bool is_second = has_other && other < member;

    return b->received + (is_second ? gradient_elems(a) * a->width : 0);
}

/* Begin to pass on the sum for the last step's block, and to receive that for this step's, and what comes
 * home. */
static void pass_gradients(const sw_ring_call *a, const backward *b, uint32_t step)
{
    sw_ring *ring = a->ring;
    uint32_t own = ring->group->index;
    uint32_t last = sw_ring_block_in(a, step - 1);
    uint32_t home = comes_home_from(a, step);
    uint32_t to = a->reach[last] >= step ? sw_ring_ahead(a, 1) : last;
    uint64_t n = gradient_elems(a);

    if (sw_ring_holds(a, step - 1) && to != own)
        ring->n_sent[to] = n;
    if (sw_ring_holds(a, step))
        ring->n_received[sw_ring_before(a)] = n;
    if (home != own)
        ring->n_received[home] = n;
    sw_exchange_elems_begin(ring->gradients, a->dtype, b->sent, ring->n_sent, b->received, ring->n_received);
    memset(ring->n_sent, 0, ring->group->size * sizeof *ring->n_sent);
    memset(ring->n_received, 0, ring->group->size * sizeof *ring->n_received);
}

static void put_home(const sw_ring_call *a, const sw_custom_back *back, const char *sum)
{
    if (back->d_in[1] != NULL)
        memcpy(back->d_in[1], sum, (size_t)a->size.keys * a->width);
    if (back->d_in[2] != NULL)
        memcpy(back->d_in[2], sum + a->size.keys * a->width, (size_t)a->size.values * a->width);
}

/* The messages of a step have come. */
static void add_up(const sw_ring_call *a, const sw_kernel *kernel, const sw_custom_back *back,
                   const backward *b, uint32_t step)
{
    uint32_t own = a->ring->group->index;
    uint32_t home = comes_home_from(a, step);

    if (home != own)
        put_home(a, back, place_from(a, b, step, home));
    if (!sw_ring_holds(a, step))
        return;
    if (step == 0)
        memcpy(b->sent, b->found, gradient_elems(a) * a->width);
    else
        sw_kernel_add(kernel, a->dtype, place_from(a, b, step, sw_ring_before(a)), b->found, b->sent,
                      gradient_elems(a));
    if (step == 0 && a->reach[own] == 0)
        put_home(a, back, b->sent); /* it never left */
}

/* One step more than forward, for what comes home last. */
static void run_backward(const sw_ring_call *a, const sw_kernel *kernel, const sw_custom_back *back,
                         const backward *b)
{
    for (uint32_t s = 0; s <= a->n_steps + 1; s++) {
        const char *block = b->blocks[s % 2];
        if (s < a->n_steps)
            sw_ring_pass(a, s, block, b->blocks[(s + 1) % 2]);
        if (s > 0)
            pass_gradients(a, b, s);
        if (sw_ring_holds(a, s))
            find_gradients(a, kernel, b, s, back->d_in[3], block);
        sw_pending_wait(a->ring->blocks);
        sw_pending_wait(a->ring->gradients);
        add_up(a, kernel, back, b, s);
    }
}

sw_status sw_ring_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err)
{
    sw_ring_call *a = context;
    const sw_tensor *out = back->out;
    backward b;

    if (out->dims[2] == 0)
        return SW_OK;
    SW_TRY(sw_attention_frame(step, back->in, &a->args, &a->frame, err));
    a->frame.lse = a->lse;
    a->frame.out = sw_heads_dense(sw_tensor_data(out), out->dims[1], out->dims[2], out->dims[3]);
    a->frame.d_out = sw_heads_read(back->d_out, out->dims[1], out->dims[2], out->dims[3]);
    SW_TRY(take_backward(a, step, back, &b, err));
    sw_ring_pack(a, back->in, b.blocks[0]);
    run_backward(a, sw_step_kernel(step), back, &b);
    return SW_OK;
}
