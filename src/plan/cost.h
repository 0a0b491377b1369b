/*
 * What a plan costs: the elements and bytes that a rank holds, how often each piece exists, and what the
 * collectives of a step move. Arithmetic on shapes and placements only, so that a plan read from a file costs
 * what a fresh one does.
 *
 * Assumptions, which the explanation states: activations have 2 bytes an element; a gradient has its
 * parameter's dtype; AdamW keeps a master copy and two moments of 4 bytes for each trained element;
 * collectives are rings, and what is counted is what one rank receives.
 */
#ifndef SW_PLAN_COST_H
#define SW_PLAN_COST_H

#include "plan/plan_data.h"

enum { SW_COST_ACTIVATION_BYTES = 2, SW_COST_OPTIMIZER_BYTES = 12 };

/* Where a rank stands on the axes that placements speak of. */
typedef struct sw_cost_coord {
    uint32_t at[SW_ON_COUNT_];
} sw_cost_coord;

/* Size of the axis of a placement. */
uint32_t sw_cost_axis_size(const sw_plan *plan, int on);

/* The coordinates of a rank of the plan's mesh; the first ones for a rank that it lacks. */
sw_cost_coord sw_cost_coord_of(const sw_plan *plan, uint32_t rank);

/* The shape that placements speak of: the view, if there is one. NULL when it is not known. */
const sw_shape *sw_cost_shape(const sw_facts *facts);

/* Extents that the rank at `at` holds; returns their number. */
uint32_t sw_cost_local_dims(const sw_plan *plan, const sw_facts *facts, const sw_cost_coord *at,
                            uint64_t dims[SW_MAX_DIMS]);

/* Their product. */
uint64_t sw_cost_local_elems(const sw_plan *plan, const sw_facts *facts, const sw_cost_coord *at);

/* Bytes of so many elements, rounded up; 0 for an unknown dtype. */
uint64_t sw_cost_bytes(sw_dtype dtype, uint64_t elems);

/* Ranks of one pipeline stage that hold the same piece: least and most over the pieces of the parameter. */
void sw_cost_copies(const sw_plan *plan, const sw_facts *facts, uint64_t *least, uint64_t *most);

/* Most ranks of the axis that hold one piece of the cut; 1 without one. */
uint32_t sw_cost_replicas(const sw_placement *placement, uint32_t *least);

/* ---- what a rank holds ---- */

typedef struct sw_cost_load {
    uint64_t elems;
    uint64_t param_bytes;
    uint64_t grad_bytes;
    uint64_t optimizer_bytes;
} sw_cost_load;

typedef struct sw_cost_totals {
    sw_cost_load most;  /* of the fullest stage, on its first rank: chunks never grow along an axis */
    sw_cost_load least; /* of the emptiest stage, on its last rank */
    uint32_t most_rank;
    uint32_t least_rank;
    double bytes;         /* of the whole model */
    double bytes_on_tp;   /* of what is cut over tp alone, ... */
    double bytes_on_ep;   /* ... over ep alone, ... */
    double bytes_on_both; /* ... and over both */
} sw_cost_totals;

/* SW_E_NO_MEMORY only. */
sw_status sw_cost_total(const sw_plan *plan, sw_cost_totals *out, sw_error *err);

/* ---- what a step moves ---- */

/* Widths of what enters and leaves a boundary, in elements a token; 0 when the shapes do not tell. */
typedef struct sw_cost_widths {
    uint64_t in;
    uint64_t out;
} sw_cost_widths;

/* Width of the residual stream: of the first norm of a layer, else of the embedding; 0 when not known. */
uint64_t sw_cost_hidden(const sw_plan *plan);

sw_cost_widths sw_cost_widths_of(const sw_plan *plan, const sw_spec *spec, uint64_t hidden);

/*
 * Bytes that one rank receives for each token of its dp and cp part when a tensor of `width` elements a token
 * goes through the collective over `axis`.
 */
double sw_cost_traffic(const sw_plan *plan, sw_collective collective, sw_axis axis, uint64_t width);

/* Elements of key and value that a rank holds for each token; 0 when the shapes do not tell (latent
 * attention). */
uint64_t sw_cost_kv_width(const sw_plan *plan, const sw_spec *spec);

#endif
