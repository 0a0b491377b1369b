/*
 * Moves: the declared transitions of a plan's boundaries. How a tensor is placed is known when a plan is
 * applied, its extents when it comes: a move is compiled for each shape once and keeps that, so that a step
 * of shapes that were seen before compiles and allocates nothing. Boundaries that say the same share a move.
 */
#ifndef SW_APPLY_MOVE_H
#define SW_APPLY_MOVE_H

#include "apply/active.h"
#include "dtensor/redistribution.h"
#include "tensor/step.h"

/* A transition for one shape and element type. */
typedef struct sw_compiled_move {
    struct sw_compiled_move *next;
    struct sw_moves *moves;
    sw_redistribution made;
    sw_dtype dtype;
    size_t forward_bytes; /* of workspace */
    size_t backward_bytes;
    uint64_t from_dims[SW_TENSOR_MAX_DIMS]; /* of this rank */
    uint64_t to_dims[SW_TENSOR_MAX_DIMS];
} sw_compiled_move;

typedef struct sw_move {
    struct sw_moves *moves;
    sw_placement from[SW_GRID_MAX_AXES];
    sw_placement to[SW_GRID_MAX_AXES];
    uint32_t split;             /* axes over which the consumer uses it in parts, a bit each */
    sw_compiled_move *compiled; /* the last one first */
    struct sw_move *next;
} sw_move;

/* All moves of a net. */
typedef struct sw_moves {
    sw_arena *arena; /* borrowed */
    sw_active *active;
    sw_move *first;
    uint64_t n_forward[SW_COLL_COUNT_]; /* collectives that were run, by kind */
    uint64_t n_backward[SW_COLL_COUNT_];
} sw_moves;

/* The move between these placements, one an axis; *out NULL when nothing moves either way. */
sw_status sw_moves_find(sw_moves *moves, const sw_placement *from, const sw_placement *to, uint32_t split,
                        sw_move **out, sw_error *err);

/* Can a tensor of so many dims be moved so? SW_E_PLAN: a dim that it lacks. */
sw_status sw_move_check(const sw_move *move, uint32_t n_dims, sw_error *err);

/* How an extent that the transition cuts is known: tokens and width of the whole. */
typedef struct sw_whole {
    uint64_t tokens; /* dim 1 */
    uint64_t width;  /* the last dim */
} sw_whole;

/* Extents over all ranks of `x`, which lies as `places` say: what is not cut is here. */
void sw_apply_whole_dims(const sw_grid *grid, const sw_placement *places, const sw_tensor *x, sw_whole whole,
                         uint64_t *dims);

/* `x` moved; NULL when the step has failed. What arrives with other extents than it should fails the step. */
sw_tensor *sw_move_run(sw_move *move, sw_step *step, const sw_tensor *x, sw_whole whole);

#endif
