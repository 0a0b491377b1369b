/*
 * What must hold before anything is changed, asked of the whole plan and every part, first fault first: the
 * net has the modules and parameters, and can do what the plan asks of them.
 */
#include <string.h>

#include "apply/injection.h"
#include "apply/phases.h"
#include "apply/special.h"
#include "base/status.h"

sw_module *sw_apply_module(const sw_applied *a, const sw_spec *spec)
{
    return sw_net_module(a->net, spec->fqn);
}

/* Does a boundary ask for anything that needs its module? */
static bool needs_module(const sw_spec *spec)
{
    return spec->in_src.n + spec->in_dst.n + spec->out_src.n + spec->out_dst.n + spec->n_deferred > 0;
}

static bool has_argument(const sw_module *module, const char *name)
{
    for (uint32_t i = 0; module->class->arguments[i] != NULL; i++) {
        if (strcmp(module->class->arguments[i], name) == 0)
            return true;
    }
    return false;
}

/* Inputs that no argument takes would come unmoved. One input fits the only argument, whatever its name. */
static sw_status check_inputs(const sw_spec *spec, const sw_module *module, const sw_io *io, sw_error *err)
{
    bool is_only = io->n == 1 && module->class->arguments[1] == NULL;

    for (uint32_t i = 0; i < io->n && !is_only; i++) {
        if (!has_argument(module, io->entries[i].name))
            return SW_FAIL(err, SW_E_PLAN, "name inputs as the module's class does",
                           "%s: class %s has no input '%.64s'", spec->fqn, module->class->name,
                           io->entries[i].name);
    }
    return SW_OK;
}

static sw_status check_spec(const sw_applied *a, const sw_spec *spec, sw_error *err)
{
    const sw_module *module = sw_apply_module(a, spec);

    if (module == NULL && sw_net_leaves_alone(a->net, spec->fqn))
        return SW_OK;
    SW_TRY(sw_apply_check_injection(a, spec, err));
    if (module == NULL && needs_module(spec) && spec->n_params > 0)
        return SW_FAIL(err, SW_E_PLAN, "this boundary can be planned but not run",
                       "%s: the net has no such module", spec->fqn);
    if (module == NULL)
        return SW_OK;
    SW_TRY(check_inputs(spec, module, &spec->in_src, err));
    SW_TRY(check_inputs(spec, module, &spec->in_dst, err));
    if (spec->out_src.n > 1 || spec->out_dst.n > 1)
        return SW_FAIL(err, SW_E_PLAN, "name one output", "%s: class %s has one output, the plan has more",
                       spec->fqn, module->class->name);
    return SW_OK;
}

static sw_status check_axes(const sw_applied *a, sw_error *err)
{
    if (sw_mesh_axis_size(a->plan->mesh, SW_AXIS_PP) > 1)
        return SW_FAIL(err, SW_E_PLAN, "use a mesh without pp", "pipeline stages can be planned but not run");
    return SW_OK;
}

static sw_status check_untouched(const sw_net *net, sw_error *err)
{
    if (net->owner.context != NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "make another net", "a plan was applied to this net already");
    for (uint32_t i = 0; i < net->n_parameters; i++) {
        if (net->parameters[i].tensor != NULL)
            return SW_FAIL(err, SW_E_ARGUMENT, "apply the plan before memory is taken",
                           "%s has its memory already", net->parameters[i].fqn);
    }
    return SW_OK;
}

sw_status sw_apply_preflight(sw_applied *a, sw_error *err)
{
    const sw_plan *plan = a->plan;

    SW_TRY(check_untouched(a->net, err));
    SW_TRY(check_axes(a, err));
    for (uint32_t i = 0; i < plan->n_special; i++) {
        if (!sw_special_is_known(plan->special[i].handler))
            return SW_FAIL(err, SW_E_PLAN, "name a handler that there is", "%s: no handler '%.64s'",
                           plan->special[i].fqn, plan->special[i].handler);
    }
    for (uint32_t s = 0; s < plan->n_specs; s++)
        SW_TRY(check_spec(a, &plan->specs[s], err));
    return SW_OK;
}
