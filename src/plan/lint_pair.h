/* Lint of column and row layers: a region whose exit is a partial sum has both. */
#ifndef SW_PLAN_LINT_PAIR_H
#define SW_PLAN_LINT_PAIR_H

#include "plan/plan_data.h"

/* Findings go to the plan's faults; the status is for want of memory. */
sw_status sw_lint_pairs(sw_plan *plan, sw_error *err);

#endif
