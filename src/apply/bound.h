/* What is bound to a module: stages over the ranks of an axis. */
#ifndef SW_APPLY_BOUND_H
#define SW_APPLY_BOUND_H

#include "apply/bind.h"
#include "parallel/experts.h"

typedef struct sw_bound {
    struct sw_bound *next;
    sw_module *module;
    sw_parallel_spec spec;
    sw_cp_form form;
    const sw_group *group;
    sw_ring *ring; /* cp as a ring; of the net */
    sw_expert_ranks experts;
    sw_stages stages;
} sw_bound;

struct sw_applied;

/* Fill in group and stages by kind and form. Local. */
sw_status sw_bound_make(sw_bound *bound, struct sw_applied *applied, sw_error *err);

typedef sw_status sw_bound_validate(const sw_module *module, const sw_parallel_context *context,
                                    sw_error *err);
sw_bound_validate *sw_bound_validator(sw_binding_kind kind);

#endif
