/*
 * The device mesh: named axes, the coordinates and groups of a rank, and placements on an axis.
 *
 * Axes, outermost first: pp, dp, cp, ep, tp. With TP-extend-EP (an `ep` size but no `ep` axis) the dense
 * region dp*cp*tp of one pipeline stage is flattened in that order and cut again into (edp, ep), ep fastest.
 * Pure arithmetic: no communicator, no process. A mesh may be read by many threads.
 */
#ifndef SHARDWRIGHT_MESH_H
#define SHARDWRIGHT_MESH_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Axes, outermost first; `edp` exists only as the derived complement of `ep` in TP-extend-EP. */
typedef enum sw_axis {
    SW_AXIS_PP = 0,
    SW_AXIS_DP,
    SW_AXIS_CP,
    SW_AXIS_EP,
    SW_AXIS_TP,
    SW_AXIS_EDP,
    SW_AXIS_COUNT_
} sw_axis;

/** How experts are spread. */
typedef enum sw_ep_mode {
    SW_EP_NONE = 0,  /**< ep is 1 */
    SW_EP_AXIS,      /**< `ep` is an axis of the mesh */
    SW_EP_TP_EXTEND, /**< the EP group is cut out of the flattened dense region */
    SW_EP_MODE_COUNT_
} sw_ep_mode;

/** A mesh; opaque. */
typedef struct sw_mesh sw_mesh;

/** Where a rank stands: its index on each axis, `ep` and `edp` included. */
typedef struct sw_mesh_coord {
    uint32_t at[SW_AXIS_COUNT_];
} sw_mesh_coord;

/**
 * Make a mesh from text such as "dp=2,cp=2,tp=4".
 *
 * @param[out] out   the mesh; yours, to be given to sw_mesh_destroy()
 * @param      axes  axis=size pairs separated by commas, each axis once, in any order; axes are pp, dp (or
 *                   dp_replicate and dp_shard), cp, ep, tp; sizes 1 to 1048576; an axis left out has size 1,
 *                   and "" is one rank
 * @param      ep    size of a derived expert axis (TP-extend-EP); 0 or 1: none
 * @param[out] err   may be NULL
 * @return SW_OK; SW_E_ARGUMENT when the text is malformed (unknown or repeated axis, bad size, both an ep
 *         axis and a derived ep); SW_E_PLAN when the sizes do not fit each other (ep does not divide the
 *         dense region); SW_E_LIMIT when the ranks do not fit 32 bits; SW_E_NO_MEMORY
 */
SW_API SW_MUST_CHECK sw_status sw_mesh_create(sw_mesh **out, const char *axes, uint32_t ep, sw_error *err);

/** Free a mesh. NULL is fine. */
SW_API void sw_mesh_destroy(sw_mesh *mesh);

/** Size of an axis, 1 when the mesh lacks it. For `ep` the size in either mode; for `edp` its complement. */
SW_API uint32_t sw_mesh_axis_size(const sw_mesh *mesh, sw_axis axis);

/** Sizes of the two parts of dp; their product is the size of dp. Each output may be NULL. */
SW_API void sw_mesh_dp_parts(const sw_mesh *mesh, uint32_t *replicate, uint32_t *shard);

/** Number of ranks: the product of the axes pp, dp, cp, ep (as an axis) and tp. */
SW_API uint32_t sw_mesh_ranks(const sw_mesh *mesh);

/** How experts are spread on this mesh. */
SW_API sw_ep_mode sw_mesh_ep_mode(const sw_mesh *mesh);

/** Coordinates of `rank`. SW_E_ARGUMENT when the mesh has no such rank. */
SW_API SW_MUST_CHECK sw_status sw_mesh_coord_of(const sw_mesh *mesh, uint32_t rank, sw_mesh_coord *out,
                                                sw_error *err);

/**
 * Members of the group of `rank` over `axis`, ascending in the axis's own order.
 *
 * @param[out] members  room for sw_mesh_axis_size(mesh, axis) ranks; left alone on failure
 */
SW_API SW_MUST_CHECK sw_status sw_mesh_group_members(const sw_mesh *mesh, uint32_t rank, sw_axis axis,
                                                     uint32_t *members, sw_error *err);

/** "pp", "dp", "cp", "ep", "tp", "edp"; NULL when out of range. */
SW_API const char *sw_axis_name(sw_axis axis);

/** "none", "axis", "tp_extend"; NULL when out of range. */
SW_API const char *sw_ep_mode_name(sw_ep_mode mode);

/* ---- placements ---- */

/** What one axis does to a tensor. Zero is replicate. */
typedef enum sw_placement_kind {
    SW_PLACE_REPLICATE = 0, /**< every rank of the axis holds the whole */
    SW_PLACE_SHARD,         /**< tensor dim `dim` is cut over the axis */
    SW_PLACE_PARTIAL,       /**< every rank holds a summand */
    SW_PLACE_KIND_COUNT_
} sw_placement_kind;

/** One stretch of a composed cut. Zero in `replicas` or `unit` means 1. */
typedef struct sw_segment {
    uint64_t extent;   /**< rows of this stretch, along the cut dim */
    uint64_t unit;     /**< every piece is a multiple of this many rows */
    uint32_t replicas; /**< each piece is held by this many neighbouring ranks */
} sw_segment;

/**
 * A composed cut of one dim: `n_groups` equal groups follow one another, the ranks of the axis are split into
 * as many neighbouring blocks, and inside its block every segment of the group is cut on its own, in order.
 * With fewer ranks than groups each rank holds whole groups and n_groups is written as 1.
 */
typedef struct sw_cut {
    uint32_t n_groups;   /**< 1 unless fewer groups than ranks stand in the dim one after the other */
    uint32_t n_segments; /**< at least 1 */
    const sw_segment *segments;
} sw_cut;

/** A placement on one axis. `cut` is NULL for a plain contiguous shard and is borrowed from the plan. */
typedef struct sw_placement {
    sw_placement_kind kind;
    int32_t dim; /**< for a shard; negative counts from the last dim and is kept as written */
    const sw_cut *cut;
} sw_placement;

/** Rows [begin, end) of a dim. */
typedef struct sw_range {
    uint64_t begin;
    uint64_t end;
} sw_range;

/**
 * Text of a placement: "R", "P", "S(0)", "S(0;seg=4096+256r2+256r2)", "S(0;rep=4)", "S(0;g2=16+4r2+4r2)".
 *
 * @param text  may be NULL: only the length is wanted
 * @return the length of the text without its end; when it is at least `capacity` the text was cut short
 */
SW_API size_t sw_placement_text(const sw_placement *placement, char *text, size_t capacity);

/** Same kind, dim and cut. */
SW_API bool sw_placement_equal(const sw_placement *a, const sw_placement *b);

#ifdef __cplusplus
}
#endif
#endif
