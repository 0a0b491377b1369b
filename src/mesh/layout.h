/*
 * Layouts: which elements of a tensor each rank holds. A grid is up to three axes of the mesh, outermost
 * first; a layout is the global shape of a tensor and one placement for each axis of a grid. A dim that
 * several axes cut is cut in the order of the grid, each axis cutting what the one before has left: with
 * cp=S(1), tp=S(1) rank (c, t) holds piece t of piece c.
 *
 * What a rank holds is a product of one set of rows a dim. Pure arithmetic, same on all ranks.
 *
 * Invariant of a layout that was made: dims of shards are not negative, every cut fits what it cuts on every
 * rank, and there is one spelling: an axis of one rank is R, replicas over a whole axis are R, P is R with
 * `is_summed`.
 */
#ifndef SW_MESH_LAYOUT_H
#define SW_MESH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "shardwright/mesh.h"

enum { SW_GRID_MAX_AXES = 3, SW_LAYOUT_MAX_DIMS = 5 };

typedef struct sw_grid {
    uint32_t n_axes;
    sw_axis axis[SW_GRID_MAX_AXES];
    uint32_t size[SW_GRID_MAX_AXES];
} sw_grid;

/* A rank's index on each axis of a grid. */
typedef struct sw_grid_coord {
    uint32_t at[SW_GRID_MAX_AXES];
} sw_grid_coord;

/*
 * The grid of these axes of a mesh, which stand in its order: pp, dp, cp, ep, tp, or with derived experts edp
 * and ep for dp, cp and tp. SW_E_ARGUMENT, also where two of them number the same ranks; SW_E_LIMIT.
 */
sw_status sw_grid_of_mesh(sw_grid *out, const sw_mesh *mesh, const sw_axis *axes, uint32_t n_axes,
                          sw_error *err);

bool sw_grid_equal(const sw_grid *a, const sw_grid *b);

/* Ranks of the sub-grid of the axes whose bit is set in `axes`, and the coordinate of the i-th of them, outer
 * axes first; other axes stay as in `at`. The bit of axis 0 is 1. */
uint32_t sw_grid_ranks(const sw_grid *grid, uint32_t axes);
sw_grid_coord sw_grid_member(const sw_grid *grid, uint32_t axes, sw_grid_coord at, uint32_t i);
uint32_t sw_grid_index(const sw_grid *grid, uint32_t axes, sw_grid_coord at);

typedef struct sw_tensor_layout {
    sw_grid grid;
    uint32_t n_dims;
    uint64_t dims[SW_LAYOUT_MAX_DIMS]; /* global */
    sw_placement on[SW_GRID_MAX_AXES]; /* R or S; cuts are borrowed */
    /* Ranks of this axis that hold an element hold summands of it, not copies: P, and the gradients that come
     * from replicas of a shard that were used for different things. */
    bool is_summed[SW_GRID_MAX_AXES];
} sw_tensor_layout;

/*
 * A layout of `n_dims` dims with one placement an axis. SW_E_PLAN: a cut that does not fit, a dim that the
 * tensor lacks; SW_E_LIMIT: more dims than five, more bytes than an address has; SW_E_ARGUMENT: a bad grid.
 */
sw_status sw_tensor_layout_make(sw_tensor_layout *out, const sw_grid *grid, uint32_t n_dims,
                                const uint64_t *dims, const sw_placement *places, sw_error *err);

/* Does every cut fit what the outer axes leave? Of a layout that was put together from two others. */
bool sw_tensor_layout_fits(const sw_tensor_layout *layout);

/* Same grid, shape, placements. */
bool sw_tensor_layout_equal(const sw_tensor_layout *a, const sw_tensor_layout *b);
bool sw_tensor_layout_same_on(const sw_tensor_layout *a, const sw_tensor_layout *b, uint32_t axis);

/* Extents of the local tensor at a coordinate, and its elements. The largest local tensor is at 0. */
void sw_tensor_layout_local(const sw_tensor_layout *layout, sw_grid_coord at, uint64_t *dims);
uint64_t sw_tensor_layout_elems(const sw_tensor_layout *layout, sw_grid_coord at);

/* What it is on an axis: P for summands. */
sw_placement_kind sw_tensor_layout_kind(const sw_tensor_layout *layout, uint32_t axis);

/* "cp=R tp=S(1)" */
enum { SW_TENSOR_LAYOUT_TEXT = 160 };
void sw_tensor_layout_text(const sw_tensor_layout *layout, char text[SW_TENSOR_LAYOUT_TEXT]);

#endif
