/* Lint of biases: as long as what their weight gives. */
#ifndef SW_PLAN_LINT_BIAS_H
#define SW_PLAN_LINT_BIAS_H

#include "plan/plan_data.h"

/* Findings of one boundary of the plan's own model, as faults of the plan. */
void sw_lint_bias(sw_plan *plan, const sw_spec *spec);

#endif
