/* Lint of the experts of one block: all of them are cut alike over ep, and all or none over tp. */
#ifndef SW_PLAN_LINT_EXPERT_H
#define SW_PLAN_LINT_EXPERT_H

#include "plan/plan_data.h"

/* `model`: the one that the plan is checked against. Findings go to the plan's faults. */
void sw_lint_experts(sw_plan *plan, const sw_model *model, const sw_spec *spec);

#endif
