/*
 * Matching overrides with the names of a model. A file of overrides and a checkpoint may both be hostile, and
 * their product is what costs: characters compared and records copied are counted in the plan, and
 * SW_OVERRIDE_MAX_STEPS ends the planning with SW_E_LIMIT.
 */
#ifndef SW_PLAN_OVERRIDE_MATCH_H
#define SW_PLAN_OVERRIDE_MATCH_H

#include "base/glob.h"
#include "plan/override.h"

/* About half a second. A pattern takes one step for each name that its ends rule out. */
#define SW_OVERRIDE_MAX_STEPS ((uint64_t)100000000)

/* SW_E_LIMIT when the overrides have taken more steps than they may. */
sw_status sw_override_steps_status(const sw_plan *plan, sw_error *err);

/* Does the pattern match? false too when the steps are used up: ask sw_override_steps_status() at the end. */
bool sw_override_glob(sw_plan *plan, const sw_glob *pattern, const char *name, size_t length);

/*
 * Note the layouts of all entries that hold on this mesh, before parameters are placed. Borrows the overrides
 * for as long as the plan is made.
 */
sw_status sw_override_layouts_note(sw_plan *plan, const sw_overrides *overrides, sw_error *err);

/* The last layout that any entry states for this parameter, or NULL. `fqn` is its full name. */
const sw_override_layout *sw_override_layout_for(sw_plan *plan, const char *fqn, size_t length);

/* Does some layout of the entry meet a parameter of the model? */
bool sw_override_layout_is_met(sw_plan *plan, const sw_override_entry *entry);

/* The model's modules and parameters by name. Filled when first asked. */
typedef struct sw_override_names {
    const sw_model *model;
    sw_map modules;     /* FQN -> index */
    uint32_t *param_of; /* tensor -> parameter */
} sw_override_names;    /* begins with the model and zeros */

void sw_override_names_clear(sw_override_names *names);

/* SW_NO_MODULE, UINT32_MAX: not there. SW_E_NO_MEMORY only. */
sw_status sw_override_find_module(sw_override_names *names, const char *fqn, size_t length, uint32_t *out,
                                  sw_error *err);
sw_status sw_override_find_param(sw_override_names *names, const char *fqn, size_t length, uint32_t *out,
                                 sw_error *err);

#endif
