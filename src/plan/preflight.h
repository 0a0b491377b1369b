/* What is said of a checkpoint before anything is derived from it. */
#ifndef SW_PLAN_PREFLIGHT_H
#define SW_PLAN_PREFLIGHT_H

#include "plan/plan_data.h"

/* Findings on the files and names of a classified model; false when deriving a plan would only hide the
 * cause. */
bool sw_preflight(sw_plan *plan);

#endif
