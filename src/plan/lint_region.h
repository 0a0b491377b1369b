/* Lints of one boundary as a region; see lint_region.c for what must fit together. */
#ifndef SW_PLAN_LINT_REGION_H
#define SW_PLAN_LINT_REGION_H

#include "plan/plan_data.h"

/* `model`: the one that the plan is checked against. Findings go to the plan's faults. */
void sw_lint_region(sw_plan *plan, const sw_model *model, const sw_spec *spec);

#endif
