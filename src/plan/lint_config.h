/* Lints of a checkpoint against its config: a file that contradicts its config.json is never planned in
 * silence. */
#ifndef SW_PLAN_LINT_CONFIG_H
#define SW_PLAN_LINT_CONFIG_H

#include "plan/plan_data.h"

/* Shapes, layers and experts of the model against what config.json says of them. SW_E_NO_MEMORY only. */
sw_status sw_lint_config(sw_plan *plan, const sw_model *model, sw_error *err);

#endif
