/*
 * Phase 6: what follows from the final contracts and placements, derived and overridden alike. Each function
 * is one concern and one file; sw_finish() runs them in order.
 */
#ifndef SW_PLAN_FINISH_H
#define SW_PLAN_FINISH_H

#include "plan/override.h"

sw_status sw_finish(sw_plan *plan, sw_error *err);

/* tied.c: pairs of tied names, and the boundary of the one that is not stored. Before overrides are applied.
 */
sw_status sw_finish_tied(sw_plan *plan, sw_error *err);

/* tied.c: is the model of a class with a language head? */
bool sw_has_language_head(const sw_plan *plan);

/* heads.c: local counts of heads and declared attributes. */
sw_status sw_finish_heads(sw_plan *plan, sw_error *err);

/* bias.c: row biases added once after the exit; faults of biases that do not follow their weight. */
sw_status sw_finish_biases(sw_plan *plan, sw_error *err);

/* gradient.c: over which axes each parameter's gradient is summed, and reductions inside regions. */
sw_status sw_finish_gradients(sw_plan *plan, sw_error *err);

/* stage.c: pipeline stages, the terminal mark, modules that run in parallel inside, special handlers. */
sw_status sw_finish_stages(sw_plan *plan, sw_error *err);

/* Does an output of the boundary leave its computation as a partial sum over tp? How many do? */
uint32_t sw_spec_partial_outputs(const sw_spec *spec);

#endif
