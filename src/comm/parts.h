/*
 * Which part of a tensor goes over which lane, for each collective, and what ranks compare when they call it:
 * shared by the blocking forms and those that are finished later.
 */
#ifndef SW_COMM_PARTS_H
#define SW_COMM_PARTS_H

#include "comm/call.h"
#include "comm/collective.h"
#include "comm/lanes.h"

/* Bytes of an element. */
uint32_t sw_width_of(sw_dtype dtype);

/* Rows of a member, and how many this rank has. */
sw_range sw_rows_of(const sw_group *group, uint64_t extent, uint32_t member);
uint64_t sw_own_rows(const sw_group *group, uint64_t extent);

/* A dense tensor along its dim, with `rows` rows; and across two dims, of one of which it has own rows only.
 */
sw_view sw_along_view(const sw_along *along, uint64_t rows, sw_dtype dtype, const void *data);
sw_view sw_across_view(const sw_group *group, const sw_across *across, bool is_first_cut, sw_dtype dtype,
                       const void *data);

/* Set the lanes; `dim` and `cut_dim` are of the views. */
void sw_lanes_of_gather(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out);
void sw_lanes_of_scatter(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out);
void sw_lanes_of_all_to_all(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                            const sw_view *out);
void sw_lanes_of_exchange(const sw_group *group, uint32_t width, const void *sent, const uint64_t *n_sent,
                          void *received, const uint64_t *n_received);

/* Elements of the longest part that any member has for another in all_to_all. The same on all. */
uint64_t sw_longest_across(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                           const sw_view *out);

/* Enter a collective with these numbers for the comparison of calls. */
void sw_enter(const sw_group *group, sw_call_kind kind, sw_dtype dtype, sw_combine_op op, uint32_t n_numbers,
              const uint64_t *numbers);
void sw_enter_along(const sw_group *group, sw_call_kind kind, sw_dtype dtype, const sw_along *along);
void sw_enter_across(const sw_group *group, sw_dtype dtype, const sw_across *across, bool is_back);

/* The type of a sum that MPI makes itself; MPI_DATATYPE_NULL: it is made here. */
MPI_Datatype sw_sum_type(sw_dtype dtype, sw_combine_op op);

#endif
