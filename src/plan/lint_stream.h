/* Lint of the residual stream: what one boundary hands on is what the next one takes. */
#ifndef SW_PLAN_LINT_STREAM_H
#define SW_PLAN_LINT_STREAM_H

#include "plan/plan_data.h"

/* Boundaries that an override changed, against the first one that none did. Findings go to the plan's faults.
 */
void sw_lint_stream(sw_plan *plan);

#endif
