/*
 * Short transfers between the members of a group, of dense tensors: one call of MPI's own collective moves
 * all parts at once, each in a slot as long as the longest part of any member. What a message costs counts
 * more here than a copy, and than what the padding adds.
 *
 * A tensor is seen along the dim whose rows go to the members, or come from them.
 */
#ifndef SW_COMM_SLOTS_H
#define SW_COMM_SLOTS_H

#include "comm/collective.h"

/* The tensor that is cut along the first dim, or along the second one, as seen along the other. */
sw_along sw_slots_first(const sw_group *group, const sw_across *across);
sw_along sw_slots_second(const sw_group *group, const sw_across *across);

/* Elements of a slot, the same number on all members: whole rows, and for all_to_all rows of both dims. */
uint64_t sw_slot_along(const sw_group *group, const sw_along *along);
uint64_t sw_slot_across(const sw_group *group, const sw_across *across);

/* Are slots of `slot` elements the way to go? The same answer on all members. */
bool sw_slots_are_short(const sw_group *group, uint64_t slot, uint32_t width);

/* Every member's rows of `in` go to it, its part of `out` comes: rows along `to`. */
void sw_slots_swap(const sw_group *group, uint64_t slot, uint32_t width, const sw_along *from, const void *in,
                   const sw_along *to, void *out);

/* All of `in` goes to everybody. */
void sw_slots_gather(const sw_group *group, uint64_t slot, uint32_t width, const void *in, const sw_along *to,
                     void *out);

/* Every member's rows of `in` go to it, and are added there in the order of the members. */
void sw_slots_scatter(const sw_group *group, uint64_t slot, sw_dtype dtype, const sw_along *from,
                      const void *in, void *out);

#endif
