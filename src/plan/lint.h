/*
 * Phase 7: checks of a finished plan, derived, overridden or loaded from a file. Every fault is found in one
 * run; codes are stable and listed in docs/reference/findings.md.
 */
#ifndef SW_PLAN_LINT_H
#define SW_PLAN_LINT_H

#include "plan/plan_data.h"

/*
 * All lints of `plan` against `model` (the plan's own, or the one a loaded plan is checked against). Findings
 * are collected as faults of the plan. SW_E_NO_MEMORY only.
 */
sw_status sw_lint(sw_plan *plan, const sw_model *model, sw_error *err);

#endif
