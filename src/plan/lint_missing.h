/* Lint of what a checkpoint lacks: half a download would be cut as if it were whole. */
#ifndef SW_PLAN_LINT_MISSING_H
#define SW_PLAN_LINT_MISSING_H

#include "plan/plan_data.h"

/*
 * Names that the family's table and config.json tell of, and the model lacks; layers that it lacks wholly.
 * Nothing is said where the table or a number of the config is missing. SW_E_NO_MEMORY only.
 */
sw_status sw_lint_missing(sw_plan *plan, sw_error *err);

#endif
