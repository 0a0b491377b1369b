/* What a plan knows of heads: attributes of the config, and whether a boundary's projections hold keys. */
#ifndef SW_PLAN_HEADS_H
#define SW_PLAN_HEADS_H

#include "plan/plan_data.h"

/* Value of a config attribute; 0 when it is not set. */
int64_t sw_plan_attribute(const sw_plan *plan, sw_attr attr);

/* Has the boundary a projection whose rows are key/value heads, alone or fused? */
bool sw_spec_has_keys(const sw_plan *plan, const sw_spec *spec);

#endif
