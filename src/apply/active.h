/*
 * The active mesh: the axes that a plan's placements list, which are those of more than one rank, and where
 * this rank stands on them. Placements of a plan are looked up here and nowhere else.
 */
#ifndef SW_APPLY_ACTIVE_H
#define SW_APPLY_ACTIVE_H

#include "comm/comm.h"
#include "mesh/layout.h"
#include "plan/plan_data.h"

typedef struct sw_active {
    const sw_plan *plan;
    sw_comm *comm;
    sw_grid grid; /* of dense parameters and activations */
    sw_grid_coord at;
    sw_grid expert_grid; /* of routed experts under TP-extend-EP: ep; no axes otherwise */
    sw_grid_coord expert_at;
    sw_mesh_coord coord;
} sw_active;

/* SW_E_PLAN: the ranks are not those of the plan's mesh. Local. */
sw_status sw_active_make(sw_active *out, const sw_plan *plan, sw_comm *comm, sw_error *err);

/* One placement for each axis of a grid; axes that `places` does not list are R. */
void sw_active_places(const sw_grid *grid, const sw_places *places, sw_placement *out);

/* The bit of an axis of the grid; 0: it has one rank. */
uint32_t sw_active_axis(const sw_grid *grid, sw_axis axis);

/* The ranks of an axis, those of experts too. */
const sw_group *sw_active_group(const sw_active *active, sw_axis axis);

#endif
