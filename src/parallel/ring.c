/* Blocks on their way round the ring (parallel/ring.h). */
#include "parallel/ring.h"

#include "base/alloc.h"
#include "base/status.h"
#include "parallel/attention_shape.h"
#include "tensor/copy.h"

void sw_ring_destroy(sw_ring *ring)
{
    if (ring == NULL)
        return;
    sw_pending_destroy(ring->blocks);
    sw_pending_destroy(ring->gradients);
    sw_free(ring->n_sent);
    sw_free(ring->n_received);
    sw_free(ring);
}

sw_status sw_ring_create(sw_ring **out, const sw_group *group, sw_error *err)
{
    sw_ring *made = sw_alloc_zero(1, sizeof *made);
    sw_status status = SW_OK;

    if (made != NULL) {
        made->group = group;
        made->n_sent = sw_alloc_zero(group->size, sizeof *made->n_sent);
        made->n_received = sw_alloc_zero(group->size, sizeof *made->n_received);
    }
    if (made == NULL || made->n_sent == NULL || made->n_received == NULL)
        status = SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a ring");
    if (status == SW_OK)
        status = sw_pending_create(&made->blocks, group, 0, err);
    if (status == SW_OK)
        status = sw_pending_create(&made->gradients, group, 0, err);
    if (status == SW_OK)
        *out = made;
    else
        sw_ring_destroy(made);
    return status;
}

/* ---- where blocks are ---- */

uint32_t sw_ring_block_in(const sw_ring_call *a, uint32_t step)
{
    uint32_t n = a->ring->group->size;
    return (a->ring->group->index + n - step % n) % n;
}

uint32_t sw_ring_ahead(const sw_ring_call *a, uint32_t by)
{
    return (a->ring->group->index + by) % a->ring->group->size;
}

uint32_t sw_ring_before(const sw_ring_call *a)
{
    return sw_ring_ahead(a, a->ring->group->size - 1);
}

bool sw_ring_holds(const sw_ring_call *a, uint32_t step)
{
    return step < a->ring->group->size && a->reach[sw_ring_block_in(a, step)] >= step;
}

bool sw_ring_is_seen(const sw_ring_call *a, uint32_t step)
{
    const sw_ring_mask mask = {a->args.is_causal, a->args.window};
    return sw_ring_sees(&mask, &a->tokens[a->ring->group->index], &a->tokens[sw_ring_block_in(a, step)]);
}

const void *sw_ring_positions(const sw_ring_call *a, const char *block)
{
    return block + (a->size.keys + a->size.values) * a->width;
}

sw_attention_args sw_ring_args(const sw_ring_call *a, const char *block)
{
    sw_attention_args args = a->frame;

    args.sinks = NULL;
    args.k = sw_heads_read(block, args.n_keys, args.n_kv_heads, args.width);
    args.v = sw_heads_read(block + a->size.keys * a->width, args.n_keys, args.n_kv_heads, args.v_width);
    args.k_positions = sw_ring_positions(a, block);
    return args;
}

/* ---- computing while messages are on their way ---- */

enum { SLICES = 4 }; /* of a row's heads */

static const void *ahead(const sw_ring_call *a, const void *values, size_t elems)
{
    return values == NULL ? NULL : (const char *)values + elems * a->width;
}

static void *ahead_out(const sw_ring_call *a, void *values, size_t elems)
{
    return values == NULL ? NULL : (char *)values + elems * a->width;
}

/* `n` key/value heads from `first` on of row `b`, and the heads that they serve. */
static sw_attention_args slice_of(const sw_ring_call *a, const sw_attention_args *all, size_t b, size_t first,
                                  size_t n)
{
    size_t group = all->n_heads / all->n_kv_heads;
    size_t head = first * group;
    sw_attention_args s = *all;

    s.n_batch = 1;
    s.n_kv_heads = n;
    s.n_heads = n * group;
    s.q_positions += b * all->q_positions_batch;
    s.k_positions += b * all->k_positions_batch;
    s.slopes = ahead(a, all->slopes, head);
    s.sinks = ahead(a, all->sinks, head);
    s.d_sinks = ahead_out(a, all->d_sinks, head);
    s.lse = ahead_out(a, all->lse, (b * all->n_heads + head) * all->n_queries);
    s.q.values = ahead(a, all->q.values, b * all->q.batch + head * all->q.head);
    s.out.values = ahead_out(a, all->out.values, b * all->out.batch + head * all->out.head);
    s.d_out.values = ahead(a, all->d_out.values, b * all->d_out.batch + head * all->d_out.head);
    s.d_q.values = ahead_out(a, all->d_q.values, b * all->d_q.batch + head * all->d_q.head);
    s.k.values = ahead(a, all->k.values, b * all->k.batch + first * all->k.head);
    s.v.values = ahead(a, all->v.values, b * all->v.batch + first * all->v.head);
    s.d_k.values = ahead_out(a, all->d_k.values, b * all->d_k.batch + first * all->d_k.head);
    s.d_v.values = ahead_out(a, all->d_v.values, b * all->d_v.batch + first * all->d_v.head);
    return s;
}

void sw_ring_compute(const sw_ring_call *a, const sw_kernel *kernel, sw_ring_kernel *run,
                     const sw_attention_args *args, void *workspace)
{
    size_t chunk = (args->n_kv_heads + SLICES - 1) / SLICES;

    if (a->ring->group->size == 1) {
        run(kernel, a->dtype, args, workspace);
        return;
    }
    for (size_t b = 0; b < args->n_batch; b++) {
        for (size_t first = 0; first < args->n_kv_heads; first += chunk) {
            size_t left = args->n_kv_heads - first;
            sw_attention_args slice = slice_of(a, args, b, first, left < chunk ? left : chunk);
            run(kernel, a->dtype, &slice, workspace);
            (void)sw_pending_is_here(a->ring->blocks);
            (void)sw_pending_is_here(a->ring->gradients);
        }
    }
}

/* ---- blocks ---- */

void sw_ring_pack(const sw_ring_call *a, const sw_tensor *const *in, char *block)
{
    sw_copy_to_dense(in[1], block);
    sw_copy_to_dense(in[2], block + a->size.keys * a->width);
    sw_copy_to_dense(a->args.k_positions, block + (a->size.keys + a->size.values) * a->width);
}

void sw_ring_pass(const sw_ring_call *a, uint32_t step, const char *block, char *next)
{
    sw_ring *ring = a->ring;
    bool goes_on = a->reach[sw_ring_block_in(a, step)] > step && sw_ring_holds(a, step);
    bool comes = sw_ring_holds(a, step + 1);

    ring->n_sent[sw_ring_ahead(a, 1)] = goes_on ? a->size.all : 0;
    ring->n_received[sw_ring_before(a)] = comes ? a->size.all : 0;
    sw_exchange_elems_begin(ring->blocks, a->dtype, block, ring->n_sent, next, ring->n_received);
    ring->n_sent[sw_ring_ahead(a, 1)] = 0;
    ring->n_received[sw_ring_before(a)] = 0;
}

sw_status sw_ring_take(const sw_ring_call *a, sw_step *step, uint32_t n, char **blocks, sw_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        void *memory = NULL;
        SW_TRY(sw_node_take(step, (size_t)a->size.all * a->width, &memory, err));
        blocks[i] = memory;
    }
    return SW_OK;
}
