/* Modules of towers that cannot be cut: whole, with a warning, and no fault of the plan. */
#ifndef SW_PLAN_TOWER_H
#define SW_PLAN_TOWER_H

#include "plan/plan_data.h"

/* What a fault of one of its parameters means for a tower's module; other boundaries are left alone. */
void sw_tower_note_fault(sw_spec *spec, uint32_t fault);

/* Place everything again in the modules that stay whole. Once all boundaries have their parameters. */
sw_status sw_tower_finish(sw_plan *plan, sw_error *err);

#endif
