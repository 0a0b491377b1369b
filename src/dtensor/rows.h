/*
 * Sets of rows of one dim, as ascending ranges. A rank holds such a set of each dim, in this order: row i of
 * its local tensor is the i-th row of the set. So cutting twice, sending a part and finding it again are
 * three operations on sets.
 *
 * Invariant: ranges ascend, are apart and not empty; `count` is the sum of their lengths.
 */
#ifndef SW_DTENSOR_ROWS_H
#define SW_DTENSOR_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "shardwright/mesh.h"

typedef struct sw_rows {
    uint64_t count;
    uint32_t n;
    const sw_range *ranges;
} sw_rows;

/* Rows 0 to `extent`. */
sw_status sw_rows_whole(sw_rows *out, uint64_t extent, sw_arena *arena, sw_error *err);

/* The rows of `of` that stand in it at `places`, which lie below its count. */
sw_status sw_rows_pick(sw_rows *out, const sw_rows *of, const sw_rows *places, sw_arena *arena,
                       sw_error *err);

/* The rows of both. */
sw_status sw_rows_meet(sw_rows *out, const sw_rows *a, const sw_rows *b, sw_arena *arena, sw_error *err);

/* Where the rows of `rows` stand in `in`, which holds them all. Undoes sw_rows_pick(). */
sw_status sw_rows_places(sw_rows *out, const sw_rows *rows, const sw_rows *in, sw_arena *arena,
                         sw_error *err);

bool sw_rows_equal(const sw_rows *a, const sw_rows *b);

#endif
