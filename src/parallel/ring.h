/*
 * The inside of the ring (parallel/attention.h): what forward and backward share. A block is the keys, values
 * and positions of one rank. In step s a rank computes with the block of the rank s before it while the next
 * one comes. Which blocks go how far all ranks work out alike (parallel/ring_route.h), so both ends of every
 * message know whether there is one.
 */
#ifndef SW_PARALLEL_RING_H
#define SW_PARALLEL_RING_H

#include "comm/pending.h"
#include "kernel/attention.h"
#include "parallel/attention.h"
#include "parallel/node.h"
#include "parallel/ring_route.h"

struct sw_ring {
    const sw_group *group;
    sw_pending *blocks;    /* on their way to the next rank */
    sw_pending *gradients; /* the same, and on their way home */
    uint64_t *n_sent;      /* one a rank; 0 between messages */
    uint64_t *n_received;
};

/* Elements of a block, positions included. */
typedef struct sw_ring_size {
    uint64_t keys;
    uint64_t values;
    uint64_t all;
} sw_ring_size;

/* One attention. */
typedef struct sw_ring_call {
    sw_ring *ring;
    sw_attend_args args; /* without layouts */
    sw_dtype dtype;
    size_t width; /* bytes of an element */
    sw_ring_size size;
    void *lse;               /* [B, H, T] */
    uint32_t *reach;         /* of every block */
    uint32_t n_steps;        /* after the first */
    sw_ring_tokens *tokens;  /* of every rank */
    sw_attention_args frame; /* of the kernel, the block left out */
} sw_ring_call;

/* The block that is here in a step, if it is; ranks around this one. */
uint32_t sw_ring_block_in(const sw_ring_call *a, uint32_t step);
uint32_t sw_ring_ahead(const sw_ring_call *a, uint32_t by);
uint32_t sw_ring_before(const sw_ring_call *a);

bool sw_ring_holds(const sw_ring_call *a, uint32_t step);   /* is a block here in this step? */
bool sw_ring_is_seen(const sw_ring_call *a, uint32_t step); /* and may it be seen from here? */

/* The kernel's arguments for a block. Sinks enter elsewhere, once. */
sw_attention_args sw_ring_args(const sw_ring_call *a, const char *block);

/*
 * Run a kernel of attention. In slices, between which MPI is let work: it moves large messages while it is
 * called, and not before.
 */
typedef void sw_ring_kernel(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                            void *workspace);

void sw_ring_compute(const sw_ring_call *a, const sw_kernel *kernel, sw_ring_kernel *run,
                     const sw_attention_args *args, void *workspace);

sw_status sw_ring_take(const sw_ring_call *a, sw_step *step, uint32_t n, char **blocks, sw_error *err);
void sw_ring_pack(const sw_ring_call *a, const sw_tensor *const *in, char *block);
const void *sw_ring_positions(const sw_ring_call *a, const char *block);

/* Begin to pass on the block of this step, and to receive that of the next. */
void sw_ring_pass(const sw_ring_call *a, uint32_t step, const char *block, char *next);

sw_status sw_ring_forward(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                          sw_error *err);
sw_status sw_ring_backward(void *context, sw_step *step, const sw_custom_back *back, sw_error *err);

#endif
