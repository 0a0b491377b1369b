/*
 * Which ranks of an axis hold a row, said from the row's side: walk the segments, divide. The code under test
 * walks ranks and multiplies (mesh/shard.c); the two share nothing.
 */
#ifndef SW_TEST_ROW_OWNER_H
#define SW_TEST_ROW_OWNER_H

#include <stdint.h>

#include "shardwright/mesh.h"

static inline uint64_t row_at_least_1(uint64_t n)
{
    return n == 0 ? 1 : n;
}

/* The first rank that holds `row` of a dim, and how many from it on do. The placement fits the dim. */
static inline void row_owners(const sw_placement *placement, uint64_t extent, uint32_t parts, uint64_t row,
                              uint32_t *first, uint32_t *n)
{
    static const sw_segment plain = {0, 1, 1};
    static const sw_cut whole = {1, 1, &plain};
    const sw_cut *cut = placement->cut == NULL ? &whole : placement->cut;
    uint64_t n_groups = row_at_least_1(cut->n_groups);
    uint64_t rows_a_group = extent / n_groups;
    uint64_t block = parts / n_groups;
    uint64_t group = row / rows_a_group;
    uint64_t within = row % rows_a_group;
    uint32_t i = 0;

    while (cut->n_segments > 1 && within >= cut->segments[i].extent)
        within -= cut->segments[i++].extent;
    uint64_t rows = cut->n_segments == 1 ? rows_a_group : cut->segments[i].extent;
    uint64_t unit = row_at_least_1(cut->segments[i].unit);
    uint64_t replicas = row_at_least_1(cut->segments[i].replicas);
    uint64_t n_chunks = block / replicas;
    uint64_t units_a_chunk = 1; /* the least that n_chunks chunks suffice with */
    while (units_a_chunk * n_chunks * unit < rows)
        units_a_chunk++;
    uint64_t chunk = within / unit / units_a_chunk;
    *first = (uint32_t)(group * block + chunk * replicas);
    *n = (uint32_t)replicas;
}

#endif
