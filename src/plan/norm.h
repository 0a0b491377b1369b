/*
 * Norms inside a region that no table knows: whether they are whole, or cut with the activations that they
 * are applied to. Their extents say so, and their names where the extents say two things.
 */
#ifndef SW_PLAN_NORM_H
#define SW_PLAN_NORM_H

#include "plan/plan_data.h"

typedef struct sw_norm_cut {
    sw_layout layout; /* PLAIN: whole */
    bool is_full;     /* one mean square over everything that is cut */
    bool is_unknown;  /* as wide as what is cut in the region, and nothing says whether it is applied to it */
} sw_norm_cut;

/* Of a norm's weight or bias at `path` in a boundary of this type. */
sw_norm_cut sw_norm_cut_of(const sw_plan *plan, sw_boundary_type type, const char *path,
                           const sw_shape *shape);

#endif
