/* Sides of boundaries (dtensor/boundary.h): a transition for each of their tensors. */
#include "dtensor/boundary.h"

#include <string.h>

#include "base/status.h"

static sw_status make_move(sw_redistribution *out, const sw_grid *grid, const sw_boundary_entry *entry,
                           sw_grid_coord at, sw_arena *arena, sw_error *err)
{
    sw_tensor_layout from;
    sw_tensor_layout to;

    SW_TRY(sw_tensor_layout_make(&from, grid, entry->n_dims, entry->dims, entry->from, err));
    SW_TRY(sw_tensor_layout_make(&to, grid, entry->n_dims, entry->dims, entry->to, err));
    return sw_redistribution_make(out, &from, &to, entry->split, at, arena, err);
}

sw_status sw_boundary_side_make(sw_boundary_side *out, const sw_grid *grid, const sw_boundary_entry *entries,
                                uint32_t n_entries, sw_grid_coord at, sw_arena *arena, sw_error *err)
{
    sw_boundary_tensor *tensors = sw_arena_zero(arena, n_entries, sizeof *tensors);

    if (tensors == NULL)
        return sw_arena_fail(arena, "the transitions of a boundary", err);
    for (uint32_t i = 0; i < n_entries; i++) {
        sw_status status = make_move(&tensors[i].move, grid, &entries[i], at, arena, err);
        if (status != SW_OK) {
            sw_error_context(err, "'%.64s'", entries[i].name);
            return status;
        }
        tensors[i].name = entries[i].name;
        tensors[i].position = entries[i].position;
    }
    *out = (sw_boundary_side){n_entries, tensors};
    return SW_OK;
}

const sw_boundary_tensor *sw_boundary_named(const sw_boundary_side *side, const char *name)
{
    for (uint32_t i = 0; i < side->n; i++) {
        if (strcmp(side->tensors[i].name, name) == 0)
            return &side->tensors[i];
    }
    return NULL;
}

const sw_boundary_tensor *sw_boundary_at(const sw_boundary_side *side, uint32_t position)
{
    for (uint32_t i = 0; i < side->n; i++) {
        if (side->tensors[i].position == position)
            return &side->tensors[i];
    }
    return NULL;
}
