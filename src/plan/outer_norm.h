/* Norms outside the layers: before the first one or after the last. */
#ifndef SW_PLAN_OUTER_NORM_H
#define SW_PLAN_OUTER_NORM_H

#include "plan/plan_data.h"

/* Is the boundary a norm of the decoder that stands in none of its layers? */
bool sw_is_outer_norm(const sw_spec *spec);

/* Its pipeline stage, the model order having it after the layers or not; a guess is a finding of the plan. */
uint32_t sw_stage_of_norm(sw_plan *plan, const sw_spec *spec, bool is_after);

#endif
