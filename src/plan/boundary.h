/*
 * Phases 2 and 3: which modules are boundaries, of which type, and which parameters each holds. Types come
 * from the roles of what a module holds, then from its own last segment, never from its ancestors' names.
 */
#ifndef SW_PLAN_BOUNDARY_H
#define SW_PLAN_BOUNDARY_H

#include "plan/plan_data.h"

/* Where every module and parameter of the model belongs. Freed with sw_grouping_clear(). */
typedef struct sw_grouping {
    uint8_t *type;    /* per module: sw_boundary_type; NONE when it is no boundary */
    uint32_t *owner;  /* per parameter: the module whose boundary holds it */
    uint32_t *n_held; /* per module: parameters that its boundary holds */
} sw_grouping;

sw_status sw_group(sw_grouping *out, const sw_plan *plan, sw_error *err);
void sw_grouping_clear(sw_grouping *grouping);

#endif
