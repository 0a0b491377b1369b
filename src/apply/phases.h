/* The phases of apply, in their order. Each works on a draft (apply/applied.h); none changes the net. */
#ifndef SW_APPLY_PHASES_H
#define SW_APPLY_PHASES_H

#include "apply/applied.h"

/* Before everything: can this be done at all? Every requirement, before the first is met. */
sw_status sw_apply_preflight(sw_applied *a, sw_error *err);

/* Phase A: parameters and numbers of modules. */
sw_status sw_apply_parameters(sw_applied *a, sw_error *err);
/* Phase B: parameters with a handler of their own. */
sw_status sw_apply_special(sw_applied *a, sw_error *err);
/* Phase C: boundaries, and stages inside of modules. */
sw_status sw_apply_boundaries(sw_applied *a, sw_error *err);
sw_status sw_apply_stages(sw_applied *a, sw_error *err);
sw_status sw_apply_routers(sw_applied *a, sw_error *err);
/* Phase D: tied weights. */
sw_status sw_apply_tied(sw_applied *a, sw_error *err);

/* A module of the net that a boundary is about; NULL when it has none. */
sw_module *sw_apply_module(const sw_applied *a, const sw_spec *spec);

#endif
