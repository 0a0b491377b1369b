/*
 * Routed experts under ep: one weight a projection and expert becomes one stacked name whose expert dim is
 * cut over ep; batched stores are cut where they stand. Two modes: an explicit ep axis, and TP-extend-EP,
 * whose block hands its tokens over and gets them back by itself, so that its contract is an identity on the
 * layout they arrive in.
 */
#ifndef SW_PLAN_EXPERT_H
#define SW_PLAN_EXPERT_H

#include "plan/plan_data.h"

/* If ep is on and `path` is one expert's part of a projection, count it into the stack of that projection. */
sw_status sw_expert_stack(sw_plan *plan, sw_spec *spec, uint32_t param, const char *path, bool *was_stacked,
                          sw_error *err);

/* Shapes and placements of all stacks, when every expert was seen; keep towers that tp cannot divide whole.
 */
sw_status sw_expert_finish(sw_plan *plan, sw_error *err);

/* The contract of a MoE block and of a shared expert inside one, for the ep mode. */
sw_status sw_expert_contract(sw_plan *plan, sw_spec *spec, sw_error *err);

/* Has the model blocks of routed experts, as far as the plan knows? */
bool sw_plan_has_experts(const sw_plan *plan);

#endif
