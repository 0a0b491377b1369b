/*
 * One side of a boundary: its named inputs, or its outputs, each with the transition from the layout that
 * comes to the layout that is wanted. They run one after the other and share their buffers.
 */
#ifndef SW_DTENSOR_BOUNDARY_H
#define SW_DTENSOR_BOUNDARY_H

#include "dtensor/redistribution.h"

/* What the plan says of a tensor of a boundary. Everything is borrowed. */
typedef struct sw_boundary_entry {
    const char *name;  /* of the argument or output */
    uint32_t position; /* of the output among those that are returned */
    uint32_t n_dims;
    const uint64_t *dims;     /* global */
    const sw_placement *from; /* one an axis of the grid */
    const sw_placement *to;
    uint32_t split; /* axes over which the consumer uses it in parts, a bit each */
} sw_boundary_entry;

typedef struct sw_boundary_tensor {
    const char *name;
    uint32_t position;
    sw_redistribution move;
} sw_boundary_tensor;

typedef struct sw_boundary_side {
    uint32_t n;
    const sw_boundary_tensor *tensors; /* in the order of the entries */
} sw_boundary_side;

/* Compile for the rank at `at`, in memory of `arena`. Failures name the tensor. Local. */
sw_status sw_boundary_side_make(sw_boundary_side *out, const sw_grid *grid, const sw_boundary_entry *entries,
                                uint32_t n_entries, sw_grid_coord at, sw_arena *arena, sw_error *err);

/* The tensor of a name or of a position; NULL when nothing of it is declared. */
const sw_boundary_tensor *sw_boundary_named(const sw_boundary_side *side, const char *name);
const sw_boundary_tensor *sw_boundary_at(const sw_boundary_side *side, uint32_t position);

#endif
