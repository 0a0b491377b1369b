/*
 * Phase B: parameters that no rule of placement fits have a handler by name. A handler works on the draft as
 * the other phases do. Which handlers there are is this table; a name that it lacks is refused before
 * anything is cut.
 */
#include "apply/special.h"

#include <string.h>

#include "base/status.h"

/* Heads of a gated delta rule: the first dim goes with the heads. */
static sw_status shard_first_dim(sw_applied *a, sw_applied_parameter *p, sw_error *err)
{
    sw_placement places[SW_GRID_MAX_AXES];

    for (uint32_t k = 0; k < a->active.grid.n_axes; k++) {
        places[k] = p->layout.on[k];
        if (a->active.grid.axis[k] == SW_AXIS_TP)
            places[k] = (sw_placement){SW_PLACE_SHARD, 0, NULL};
    }
    SW_TRY(sw_tensor_layout_make(&p->layout, &a->active.grid, p->parameter->n_dims, p->parameter->dims,
                                 places, err));
    sw_tensor_layout_local(&p->layout, p->at, p->dims);
    return SW_OK;
}

typedef struct handler {
    const char *name;
    sw_status (*run)(sw_applied *a, sw_applied_parameter *p, sw_error *err);
} handler;

static const handler handlers[] = {
    {"gated_delta_tp_shard", shard_first_dim},
};

static const handler *handler_of(const char *name)
{
    for (size_t i = 0; i < SW_COUNT(handlers); i++) {
        if (strcmp(handlers[i].name, name) == 0)
            return &handlers[i];
    }
    return NULL;
}

bool sw_special_is_known(const char *name)
{
    return handler_of(name) != NULL;
}

sw_status sw_apply_special(sw_applied *a, sw_error *err)
{
    for (uint32_t i = 0; i < a->plan->n_special; i++) {
        const sw_special *special = &a->plan->special[i];
        for (uint32_t k = 0; k < a->net->n_parameters; k++) {
            if (strcmp(a->parameters[k].parameter->fqn, special->fqn) != 0)
                continue;
            sw_status status = handler_of(special->handler)->run(a, &a->parameters[k], err);
            if (status != SW_OK)
                sw_error_context(err, "%s, handler %s", special->fqn, special->handler);
            SW_TRY(status);
        }
    }
    return SW_OK;
}
