/*
 * Phase 4: a spec for every boundary of the grouping, with its contract and the placement of each parameter.
 */
#ifndef SW_PLAN_DERIVE_H
#define SW_PLAN_DERIVE_H

#include "plan/plan_data.h"

sw_status sw_derive(sw_plan *plan, sw_error *err);

/*
 * The placement of one parameter of the model in `spec`, remembered per class, shape and kind of boundary.
 * `stacked` is the shape with the expert dim in front, or NULL.
 */
sw_status sw_derive_facts(sw_plan *plan, const sw_spec *spec, uint32_t param, const sw_shape *stacked,
                          uint32_t *facts, uint32_t *fault, sw_error *err);

/* Path of a parameter relative to a boundary's FQN. */
const char *sw_relative_path(const sw_spec *spec, const char *fqn);

#endif
