/*
 * Transfers between every two members of a group: each rank has a lane to every member, with the part of a
 * tensor that goes there and the part that comes back. Parts that are not one stretch of memory pass through
 * the stage, piece by piece; both ends cut a lane in the same pieces.
 */
#ifndef SW_COMM_LANES_H
#define SW_COMM_LANES_H

#include "comm/combine.h"
#include "comm/work.h"

/* How pieces are cut. */
typedef struct sw_lane_cut {
    uint32_t width;    /* bytes of an element */
    uint64_t piece;    /* elements, the same on all ranks */
    uint64_t n_rounds; /* of this rank */
    MPI_Datatype type; /* of an element that is only moved */
} sw_lane_cut;

/* The type of elements of this many bytes that are moved and not looked at. */
MPI_Datatype sw_elem_type(uint32_t width);

/* Set a lane of the group's work: views are joined here. */
void sw_lane_set(const sw_group *group, uint32_t member, const sw_view *sent, const sw_view *received);

/* Pieces that fit the stage, or whole messages where every rank's parts are stretches of memory. */
sw_lane_cut sw_lane_cut_of(const sw_group *group, uint32_t width, bool is_whole);

/* Move all lanes, this rank's own included. */
void sw_lanes_move(const sw_group *group, const sw_lane_cut *cut);

/*
 * Combine what comes over the lanes, element by element, in the order of the members; all lanes are received
 * in the same view.
 */
void sw_lanes_combine(const sw_group *group, const sw_lane_cut *cut, sw_dtype dtype, sw_combine_op op);

/* ---- one round by hand ---- */

/*
 * Post a round: receives first, from the next member on, so that not all talk to one. Returns the requests,
 * in the group's work, to be awaited. What is combined is received in the stage.
 */
int sw_lanes_post(const sw_group *group, const sw_lane_cut *cut, uint64_t round, bool is_combined);

/* After it: what came to its place, this rank's own part (once), or all of it combined. */
void sw_lanes_put(const sw_group *group, const sw_lane_cut *cut, uint64_t round);
void sw_lanes_put_own(const sw_group *group);
void sw_lanes_put_combined(const sw_group *group, const sw_lane_cut *cut, uint64_t round, sw_dtype dtype,
                           sw_combine_op op);

#endif
