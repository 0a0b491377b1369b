/*
 * Redistributions: a transition between two layouts, compiled once to the steps of one rank, with the steps
 * of its backward. Logical values do not change either way: forward the tensor is the same tensor, backward
 * the gradient the same gradient, laid out as the consumer leaves it and as the producer wants it.
 */
#ifndef SW_DTENSOR_REDISTRIBUTION_H
#define SW_DTENSOR_REDISTRIBUTION_H

#include "dtensor/step.h"

typedef struct sw_step_list {
    uint32_t n;
    sw_list_step steps[SW_GRID_MAX_AXES];
} sw_step_list;

typedef struct sw_redistribution {
    sw_tensor_layout from;
    sw_tensor_layout to;
    sw_tensor_layout to_gradient; /* as the consumer leaves it */
    sw_tensor_layout from_gradient;
    sw_step_list forward;
    sw_step_list backward;
} sw_redistribution;

/*
 * Compile for the rank at `at`, in memory of `arena`; cuts are borrowed from the layouts.
 *
 * `split` has the bit of an axis whose ranks use what they all hold for different things: the plan says so
 * (the backward of its lowering row is a sum). Local: involves no other rank, but every rank must be given
 * the same. SW_E_ARGUMENT: layouts of different grids or shapes, no such rank; SW_E_NO_MEMORY.
 */
sw_status sw_redistribution_make(sw_redistribution *out, const sw_tensor_layout *from,
                                 const sw_tensor_layout *to, uint32_t split, sw_grid_coord at,
                                 sw_arena *arena, sw_error *err);

/* The steps of one way alone. */
sw_status sw_step_list_make(sw_step_list *out, const sw_tensor_layout *from, const sw_tensor_layout *to,
                            sw_grid_coord at, sw_arena *arena, sw_error *err);

#endif
