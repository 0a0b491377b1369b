/*
 * The arithmetic of cuts: which rows of a dim a rank of an axis holds. Pure integers, shared by the planner,
 * the runtime and the checkpoint tools, so that all of them cut at the same place.
 *
 * Invariant: over the ranks of an axis each row of the dim is held exactly as often as its segment has
 * replicas (once without a cut), and rows of one segment go to ranks in ascending order.
 */
#ifndef SW_MESH_SHARD_H
#define SW_MESH_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/mesh.h"

/* Two ranks of an axis, by their index on it. */
typedef struct sw_rank_pair {
    uint32_t holder;
    uint32_t reader;
} sw_rank_pair;

/* Neighbouring ranks of an axis, by their index on it. */
typedef struct sw_rank_span {
    uint32_t first;
    uint32_t count;
} sw_rank_span;

/*
 * Rows of part `index` when `extent` rows are cut in `parts` (at least 1) chunks of one size, rounded up: the
 * trailing ones are short or empty, as PyTorch's chunk cuts. An index past the last part is empty.
 */
sw_range sw_shard_range(uint64_t extent, uint32_t parts, uint32_t index);

/*
 * Does a cut fit a dim of `extent` rows over `parts` ranks: the groups are equal and take a whole number of
 * ranks each, the segments of a group sum to it, replicas divide the ranks of a group, units divide their
 * segment, none is empty. A cut of one group and one segment of extent 0 takes the whole dim. NULL fits.
 * SW_E_PLAN with the numbers.
 */
sw_status sw_cut_check(const sw_cut *cut, uint64_t extent, uint32_t parts, sw_error *err);

/* Most ranges that sw_shard_pieces() can give for the placement. */
uint32_t sw_shard_pieces_bound(const sw_placement *placement);

/*
 * The ranges of the dim that rank `index` of `parts` holds, ascending, neighbours merged, empty ones left out
 * (so *n_pieces may be 0). Replicate and partial hold the whole. Fails as sw_cut_check() does, and with
 * SW_E_ARGUMENT for an index that is not below `parts` or a `capacity` that is too small.
 */
sw_status sw_shard_pieces(const sw_placement *placement, uint64_t extent, uint32_t parts, uint32_t index,
                          sw_range *pieces, uint32_t capacity, uint32_t *n_pieces, sw_error *err);

/*
 * The same for the rows that `index` owns: those that no lower rank holds too. Over the ranks each row is
 * owned once (P: each rank owns its summand).
 */
sw_status sw_shard_owned_pieces(const sw_placement *placement, uint64_t extent, uint32_t parts,
                                uint32_t index, sw_range *pieces, uint32_t capacity, uint32_t *n_pieces,
                                sw_error *err);

/*
 * The same for the rows that `reader` takes from `holder`: of several ranks that hold the same piece each
 * reader takes it from one, itself if it is one of them, and the readers are spread over them (P: from every
 * rank). Reader 0 takes each row from its owner.
 */
sw_status sw_shard_pieces_for(const sw_placement *placement, uint64_t extent, uint32_t parts,
                              sw_rank_pair ranks, sw_range *pieces, uint32_t capacity, uint32_t *n_pieces,
                              sw_error *err);

/* Rows that rank `index` holds: the sum of its pieces; 0 when the cut does not fit or there is no such rank.
 */
uint64_t sw_shard_local_extent(const sw_placement *placement, uint64_t extent, uint32_t parts,
                               uint32_t index);

/*
 * How many ranks of the axis hold the same rows as any one of them: `parts` for replicate, 1 for a plain
 * shard and for partial (summands differ), the replicas of a cut. 0 when segments of a cut differ in it: ask
 * sw_shard_replica_group() by segment then.
 */
uint32_t sw_shard_replicas(const sw_placement *placement, uint32_t parts);

/*
 * The ranks that hold the same piece of segment `segment` as rank `index` does, `index` included. Without a
 * cut the segment does not matter. The cut must fit (sw_cut_check).
 */
sw_rank_span sw_shard_replica_group(const sw_placement *placement, uint32_t parts, uint32_t index,
                                    uint32_t segment);

#endif
