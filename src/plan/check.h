/*
 * The parts of sw_plan_check(): a given plan against its model, against what follows from its own contracts
 * and placements, and against what would be derived. Findings are collected as faults of the working copy.
 */
#ifndef SW_PLAN_CHECK_H
#define SW_PLAN_CHECK_H

#include "plan/plan_data.h"

/*
 * Finish `work`, a copy of `given`, again from its contracts and placements (phase 6), and name everything
 * that `given` says otherwise: stale_grad_sum, stale_lowering, ... The biases and heads are checked on the
 * way, and `work` learns where its boundaries stand in the model.
 */
sw_status sw_check_finish(const sw_plan *given, sw_plan *work, const sw_model *model, sw_error *err);

/*
 * What the file says twice, of `work` (finished again): switches against contracts, marks of overrides
 * against the overrides that are listed, tied names against the boundaries that hold them.
 */
void sw_check_marks(sw_plan *work);

/* Derive the plan afresh for its mesh and switches and name where the given one differs: warnings. */
sw_status sw_check_derived(const sw_plan *given, sw_plan *work, const sw_model *model, sw_error *err);

/* "tp (partial), dp (data)", or "nothing". */
void sw_check_sums_text(const sw_grad_list *list, char *text, size_t capacity);

bool sw_check_same_sums(const sw_grad_list *a, const sw_grad_list *b);

/* Full name of a parameter; its length, cut off at the capacity. */
size_t sw_check_fqn(const sw_spec *spec, const sw_spec_param *param, char *text, size_t capacity);

#endif
