/* Lint of head counts against stored rows: wrong counts would cut inside heads. */
#ifndef SW_PLAN_LINT_HEADS_H
#define SW_PLAN_LINT_HEADS_H

#include "plan/plan_data.h"

/* Every attention of a plan that was made from `plan->model`: what its heads take in each stored weight. */
void sw_lint_heads(sw_plan *plan, const sw_spec *spec);

#endif
