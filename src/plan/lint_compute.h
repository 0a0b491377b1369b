/* Lint of what a region computes: its parameters' cuts decide what may enter and what leaves. */
#ifndef SW_PLAN_LINT_COMPUTE_H
#define SW_PLAN_LINT_COMPUTE_H

#include "plan/plan_data.h"

/* in_dst and out_src of one boundary, and where it stands inside another. Findings go to the plan's faults.
 */
void sw_lint_compute(sw_plan *plan, const sw_spec *spec);

#endif
