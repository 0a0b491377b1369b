/* Lint of a region's own input and output: its weights take one width, and give the width of the stream. */
#ifndef SW_PLAN_LINT_WIDTHS_H
#define SW_PLAN_LINT_WIDTHS_H

#include "plan/plan_data.h"

/* Findings of one boundary of the plan's own model, as faults of the plan. */
void sw_lint_widths(sw_plan *plan, const sw_spec *spec);

#endif
