/*
 * Collectives over a dim of a tensor. Where a dim is cut, each member of the group has its plain chunk
 * (sw_shard_range): extents may be uneven, parts empty.
 *
 * All of these are hot: collective over the group, no agreement, no allocation. What can be wrong with the
 * arguments is checked when a transition is compiled. Every member calls the same, with the same extents and
 * dtype (debug builds look); a group of one rank copies. Inputs and outputs do not overlap, unless it says
 * so.
 *
 * Members that share a host go through a window of shared memory (comm/window.h), and between hosts by MPI
 * (comm/hosts.h); a group of which no two do goes by MPI alone.
 *
 * Sums and maxima over windows, of reduce_scatter, and of all_reduce for maxima, BF16 and F16, are made in
 * the order of the members, and where windows are on several hosts, host by host: the same bits on every rank
 * and in every run, whatever the sizes. Sums of BF16 and F16 are F32 until they are rounded once.
 */
#ifndef SW_COMM_COLLECTIVE_H
#define SW_COMM_COLLECTIVE_H

#include "comm/combine.h"
#include "comm/comm.h"
#include "comm/view.h"

/* A dense tensor as seen along one dim, with its extent over the whole group. */
typedef struct sw_along {
    uint64_t n_outer; /* product of the dims before */
    uint64_t extent;
    uint64_t n_inner; /* product of the dims behind */
} sw_along;

/* A dense tensor as seen along two dims. */
typedef struct sw_across {
    uint64_t n_outer;
    uint64_t first;
    uint64_t n_middle;
    uint64_t second;
    uint64_t n_inner;
} sw_across;

/* S(d) to R: `in` has this rank's rows, `out` gets all. `in` may be its own place in `out` when n_outer is 1.
 */
void sw_all_gather(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in, void *out);

/* P to S(d): `in` has all rows, `out` gets this rank's rows of the sum. */
void sw_reduce_scatter(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in,
                       void *out);

/* P to R. `out` may be `in`. */
void sw_all_reduce(const sw_group *group, uint64_t n_elems, sw_dtype dtype, const void *in, void *out);
void sw_all_reduce_max(const sw_group *group, uint64_t n_elems, sw_dtype dtype, const void *in, void *out);

/*
 * S(second) to S(first): `in` has all rows of the first dim and this rank's of the second, `out` the other
 * way round. And back.
 */
void sw_all_to_all(const sw_group *group, const sw_across *across, sw_dtype dtype, const void *in, void *out);
void sw_all_to_all_back(const sw_group *group, const sw_across *across, sw_dtype dtype, const void *in,
                        void *out);

/* R to S(d): this rank's rows. Local. */
void sw_slice(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in, void *out);

/* The values of member `root` on all. */
void sw_broadcast(const sw_group *group, uint32_t root, uint64_t n_elems, sw_dtype dtype, void *values);

/*
 * All-to-all with a count for each pair. Counts: every member learns what the others have for it, `n_each`
 * numbers from each (rows by expert, say). Elements: what goes to the members stands one behind the other in
 * `sent`, what comes in `received`; both ends must count alike.
 */
void sw_exchange_counts(const sw_group *group, uint32_t n_each, const uint64_t *sent, uint64_t *received);
void sw_exchange_elems(const sw_group *group, sw_dtype dtype, const void *sent, const uint64_t *n_sent,
                       void *received, const uint64_t *n_received);

/* ---- tensors with strides ---- */

/* The same for views; `dim` is that of the whole, which the other view has this rank's rows of. */
void sw_all_gather_view(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                        const sw_view *out);
void sw_reduce_scatter_view(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                            const sw_view *out);
void sw_all_reduce_view(const sw_group *group, sw_dtype dtype, sw_combine_op op, const sw_view *in,
                        const sw_view *out);
void sw_all_to_all_view(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, sw_dtype dtype,
                        const sw_view *in, const sw_view *out);

#endif
