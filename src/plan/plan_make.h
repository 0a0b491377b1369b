/* The empty plan that creation and loading start from. */
#ifndef SW_PLAN_PLAN_MAKE_H
#define SW_PLAN_PLAN_MAKE_H

#include "plan/plan_data.h"

/* A plan with nothing but its mesh (copied) and what follows from it; give it to sw_plan_destroy(). */
sw_status sw_plan_make_empty(sw_plan **out, const sw_mesh *mesh, sw_error *err);

/* Another mesh (copied) for a plan that is empty but for it. */
void sw_plan_set_mesh(sw_plan *plan, const sw_mesh *mesh);

#endif
