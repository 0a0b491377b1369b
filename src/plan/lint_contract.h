/* Lints of what one boundary declares: contract, injections, and where in the model it stands. */
#ifndef SW_PLAN_LINT_CONTRACT_H
#define SW_PLAN_LINT_CONTRACT_H

#include "plan/plan_data.h"

/* Findings go to the plan's faults. */
void sw_lint_contract(sw_plan *plan, const sw_spec *spec);

#endif
