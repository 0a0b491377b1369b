/*
 * Phase 1 on a whole model: a class for every pattern. Sources in order: architecture rules of an override
 * file, user rules, the family's table, the default rules, SKIP. A companion of a quantised weight is classed
 * by the weight's name.
 */
#ifndef SW_PLAN_CLASSIFY_H
#define SW_PLAN_CLASSIFY_H

#include "plan/override.h"

/* Fill plan->classes. `overrides` may be NULL. */
sw_status sw_classify(sw_plan *plan, const sw_overrides *overrides, sw_error *err);

/* Class of a parameter of the plan's model. */
const sw_class *sw_class_of(const sw_plan *plan, uint32_t param);

/* "family llama: model.layers.#.self_attn.q_proj.weight", "default rule 10: q_proj"; into `text`. */
void sw_class_rule_text(const sw_plan *plan, const sw_class *class_, char *text, size_t capacity);

#endif
