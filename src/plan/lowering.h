/*
 * Lowering: which collective a declared transition becomes, forward and backward. A row exists where the
 * forward moves data or the backward does (a region that is cut over tp and gets its input whole sums that
 * input's gradient).
 */
#ifndef SW_PLAN_LOWERING_H
#define SW_PLAN_LOWERING_H

#include "plan/plan_data.h"

/* "none", "all_gather", ...; NULL when out of range. */
const char *sw_collective_name(sw_collective collective);

/* Collectives of one axis' transition. `is_split`: what enters whole is used in parts by the ranks of the
 * axis. */
typedef struct sw_transition {
    sw_collective forward;
    sw_collective backward;
    int32_t dim;
    int32_t other_dim;
    bool is_known; /* false: no collective makes this transition (R or S to P) */
} sw_transition;

sw_transition sw_lower(sw_placement from, sw_placement to, bool is_split);

/* Fill lower_in and lower_out of every spec; an impossible transition is a fault. */
sw_status sw_lower_plan(sw_plan *plan, sw_error *err);

/* Is the computation of this boundary cut over `axis` (some parameter is sharded over it)? */
bool sw_spec_is_split(const sw_plan *plan, const sw_spec *spec, int axis);

#endif
