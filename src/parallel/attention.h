/*
 * Attention of a sequence that is cut over the ranks of context parallelism, in three forms with one result:
 *
 *     gather   every rank gets the keys and values of all: least messages, most memory
 *     ring     keys and values are passed on from rank to rank: memory falls as 1 / ranks
 *     Ulysses  every rank gets all tokens of some heads: least traffic, as far as heads go
 *
 * q [B, T, H, D], k [B, T, K, D], v [B, T, K, E] are this rank's tokens; all ranks have as many (what they do
 * not divide is padded: parallel/sequence.h). So are the positions in `args`, by which everything is masked,
 * whatever the order of the tokens; slopes and sinks are of the heads that are here. Out is [B, T, H, E], in
 * the layout of q.
 *
 * Gradients: q, k and v whole for this rank's tokens. Of sinks, which all ranks hold, each rank has a
 * summand.
 *
 * Drawings: docs/reference/context-parallel.md. All are collective over the group.
 */
#ifndef SW_PARALLEL_ATTENTION_H
#define SW_PARALLEL_ATTENTION_H

#include "comm/comm.h"
#include "tensor/operations.h"

sw_tensor *sw_attention_gather(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                               const sw_tensor *v, const sw_attend_args *args);

/* Query heads that the ranks do not divide are refused. */
sw_tensor *sw_attention_ulysses(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                                const sw_tensor *v, const sw_attend_args *args);

/* SW_E_PLAN, with the numbers of ranks that fit: ranks do not divide the heads of a rank. */
sw_status sw_ulysses_check(uint64_t n_heads, uint32_t n_ranks, sw_error *err);

/* What the ring needs besides memory of the step: made once for a group, for any number of attentions. */
typedef struct sw_ring sw_ring;

sw_status sw_ring_create(sw_ring **out, const sw_group *group, sw_error *err); /* the group is borrowed */
void sw_ring_destroy(sw_ring *ring);                                           /* NULL is fine */

/* `ring` is borrowed until the step ends. */
sw_tensor *sw_attention_ring(sw_step *step, sw_ring *ring, const sw_tensor *q, const sw_tensor *k,
                             const sw_tensor *v, const sw_attend_args *args);

/*
 * Generation: queries [B, T, H, D] that all ranks have alike, over a cache of which each rank has some keys,
 * k [B, S, K, D] and v; ranks may have different numbers of them, or none. Out is whole on all ranks, with
 * the same bits. There is no backward.
 */
sw_tensor *sw_attention_cached(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                               const sw_tensor *v, const sw_attend_args *args);

#endif
