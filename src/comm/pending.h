/*
 * Collectives that are begun now and finished later, so that a rank computes meanwhile. A sw_pending is a
 * place for one of them, made beforehand with a stage of its own; on the way nothing is allocated. Until
 * sw_pending_wait() the input may not be written and the output not be read; the ranks of the group begin
 * and finish theirs in the same order, with other collectives in between as they like.
 *
 * What would not go in one piece through the stage is done at once when it is begun, and so is what a single
 * rank does alone. The results are those of the blocking forms, bit for bit, but for the order of a sum that
 * MPI makes.
 */
#ifndef SW_COMM_PENDING_H
#define SW_COMM_PENDING_H

#include "comm/collective.h"

typedef struct sw_pending sw_pending;

/*
 * A place for collectives over `group`, which is borrowed. `stage_bytes` are the same on all ranks:
 * sw_pending_stage() of the largest part for what is no stretch of memory or is added here, else 0. Local.
 * SW_E_NO_MEMORY.
 */
sw_status sw_pending_create(sw_pending **out, const sw_group *group, size_t stage_bytes, sw_error *err);
size_t sw_pending_stage(const sw_group *group, uint64_t part_elems, sw_dtype dtype);
void sw_pending_destroy(sw_pending *pending); /* nothing may be pending; NULL is fine */

/* As in comm/collective.h. Hot. */
void sw_all_gather_begin(sw_pending *pending, const sw_along *along, sw_dtype dtype, const void *in,
                         void *out);
void sw_reduce_scatter_begin(sw_pending *pending, const sw_along *along, sw_dtype dtype, const void *in,
                             void *out);
void sw_all_reduce_begin(sw_pending *pending, uint64_t n_elems, sw_dtype dtype, const void *in, void *out);
void sw_all_to_all_begin(sw_pending *pending, const sw_across *across, sw_dtype dtype, const void *in,
                         void *out);
void sw_all_to_all_back_begin(sw_pending *pending, const sw_across *across, sw_dtype dtype, const void *in,
                              void *out);
void sw_exchange_elems_begin(sw_pending *pending, sw_dtype dtype, const void *sent, const uint64_t *n_sent,
                             void *received, const uint64_t *n_received);

/* Has everything come? Lets MPI work a little; the output is right only after sw_pending_wait(). */
bool sw_pending_is_here(sw_pending *pending);

/* Finish; does nothing when nothing is pending. */
void sw_pending_wait(sw_pending *pending);

#endif
