/*
 * Parts: which elements of a tensor one stored tensor holds. A part is a product of one list of ranges per
 * dim: along each dim the stored tensor is these ranges of the whole, one after the other. So a part is an
 * ordinary dense tensor, and its boxes are the product of its ranges. Pure arithmetic.
 *
 * Invariant: parts are made of extents whose product fits 64 bits, so no product here overflows.
 */
#ifndef SW_CHECKPOINT_PART_H
#define SW_CHECKPOINT_PART_H

#include "base/arena.h"
#include "io/tensor_list.h"
#include "shardwright/mesh.h"

typedef struct sw_pieces {
    uint32_t n;
    const sw_range *ranges; /* ascending, not empty, not touching */
} sw_pieces;

typedef struct sw_part {
    uint32_t n_dims;
    const sw_pieces *along; /* one a dim; shared between equal parts (layers repeat) and never changed */
} sw_part;

/* What a file holds of a tensor, and what of it counts. Shared between equal ones and never changed. */
typedef struct sw_held {
    sw_part part;
    sw_part owned;   /* what no lower coordinate holds too: a product of some of its ranges */
    bool is_replica; /* it owns nothing; `owned` means nothing then */
} sw_held;

/* The whole tensor. */
sw_status sw_part_whole(sw_part *out, const uint64_t *dims, uint32_t n_dims, sw_arena *arena, sw_error *err);

/* A file that holds and owns the whole tensor. */
sw_status sw_held_whole(const sw_held **out, const uint64_t *dims, uint32_t n_dims, sw_arena *arena,
                        sw_error *err);

/* Rows held along a dim; elements held. */
uint64_t sw_part_extent(const sw_part *part, uint32_t dim);
uint64_t sw_part_elems(const sw_part *part);

/* Elements that two parts of one tensor share. */
uint64_t sw_part_overlap(const sw_part *a, const sw_part *b);

/* Same ranges in the same order; where both hold nothing, the same extents: no range is stored then. */
bool sw_part_equal(const sw_part *a, const sw_part *b);

/* Equal parts, of which the same is owned. */
bool sw_held_equal(const sw_held *a, const sw_held *b);

/*
 * Boxes of a part, row-major over its ranges: count, and the i-th as begins and extents. An empty part has
 * one box, with an extent of 0.
 */
uint64_t sw_part_box_count(const sw_part *part);
void sw_part_box(const sw_part *part, uint64_t i, uint64_t *begin, uint64_t *extent);

/*
 * The part whose boxes these are, `n_dims` begins and extents each; touching ranges become one. SW_E_FORMAT
 * when they are not a product of ascending ranges in row-major order.
 */
sw_status sw_part_from_boxes(sw_part *out, const uint64_t *begins, const uint64_t *extents, uint32_t n_boxes,
                             uint32_t n_dims, sw_arena *arena, sw_error *err);

/* Does the part lie inside a tensor of these extents? */
bool sw_part_fits(const sw_part *part, const uint64_t *dims, uint32_t n_dims);

/*
 * Do `owners` hold every element of a tensor of these dims exactly once? *covered gets the elements that are
 * held at least once, *twice those held more than once; SW_E_FORMAT says so when they are not all and none.
 * SW_E_LIMIT: too many regions to be counted.
 */
sw_status sw_parts_cover(const sw_part *owners, uint32_t n_owners, const uint64_t *dims, uint32_t n_dims,
                         uint64_t *covered, uint64_t *twice, sw_error *err);

#endif
