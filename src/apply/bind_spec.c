/* What a protocol, a request and a module of a protocol must be (apply/bind.h). */
#include <inttypes.h>
#include <string.h>

#include "apply/bind.h"
#include "base/status.h"

const char *sw_binding_kind_name(sw_binding_kind kind)
{
    static const char *const names[SW_BINDING_KIND_COUNT_] = {"none", "cp", "ep", "mesh"};
    return (unsigned)kind < SW_BINDING_KIND_COUNT_ ? names[kind] : NULL;
}

static const char *const form_names[SW_CP_FORM_COUNT_] = {"gather", "ring", "ulysses"};

const char *sw_cp_form_name(sw_cp_form form)
{
    return (unsigned)form < SW_CP_FORM_COUNT_ ? form_names[form] : NULL;
}

sw_cp_form sw_cp_form_of_name(const char *name)
{
    unsigned form = 0;

    while (form < SW_CP_FORM_COUNT_ && strcmp(form_names[form], name) != 0)
        form++;
    return (sw_cp_form)form;
}

static bool has_stages(const sw_parallel_spec *spec)
{
    return spec->stages != NULL && spec->stages[0].name != NULL;
}

static bool is_empty(const char *text)
{
    return text == NULL || *text == '\0';
}

sw_status sw_parallel_spec_check(const sw_parallel_spec *spec, sw_error *err)
{
    if (is_empty(spec->protocol) || is_empty(spec->version))
        return SW_FAIL(err, SW_E_PLAN, "name both", "a parallel protocol without name or version");
    if (sw_binding_kind_name(spec->kind) == NULL)
        return SW_FAIL(err, SW_E_PLAN, "choose none, cp, ep or mesh", "protocol %s: no binding kind %d",
                       spec->protocol, (int)spec->kind);
    if (spec->kind != SW_BINDING_NONE && (!has_stages(spec) || spec->validate == NULL))
        return SW_FAIL(err, SW_E_PLAN, "declare its stages and what checks its layout",
                       "protocol %s: binds over %s without stages or validator", spec->protocol,
                       sw_binding_kind_name(spec->kind));
    return SW_OK;
}

bool sw_parallel_spec_equal(const sw_parallel_spec *a, const sw_parallel_spec *b)
{
    return strcmp(a->protocol, b->protocol) == 0 && strcmp(a->version, b->version) == 0 &&
           a->kind == b->kind && a->stages == b->stages && a->validate == b->validate &&
           a->validate_materialized == b->validate_materialized && a->n_experts == b->n_experts;
}

sw_status sw_native_request_check(const sw_native_request *request, sw_error *err)
{
    bool is_named = request->n_match > 0;

    for (uint32_t i = 0; i < request->n_match; i++)
        is_named = is_named && !is_empty(request->match[i]);
    if (!is_named)
        return SW_FAIL(err, SW_E_PLAN, "give patterns of module names", "a request that matches no names");
    if (request->sharding == NULL)
        return SW_FAIL(err, SW_E_PLAN, "give a function that tells the layout",
                       "a request for '%.64s' without a layout", request->match[0]);
    return sw_parallel_spec_check(&request->spec, err);
}

/* ---- the ranks of an axis ---- */

sw_status sw_mesh_binding_axis(const sw_mesh_binding *binding, const char *axis, const sw_group **out,
                               sw_error *err)
{
    const sw_mesh *mesh = sw_comm_mesh(binding->comm);
    bool is_ep = strcmp(axis, "ep") == 0;

    if (!is_ep && strcmp(axis, "cp") != 0)
        return SW_FAIL(err, SW_E_PLAN, "bind over cp or ep", "no ranks to bind over '%.32s'", axis);
    if (sw_mesh_axis_size(mesh, is_ep ? SW_AXIS_EP : SW_AXIS_CP) < 2)
        return SW_FAIL(err, SW_E_PLAN, "use a mesh that has the axis", "the mesh has no %s to bind over",
                       axis);
    *out = sw_comm_group(binding->comm, is_ep ? SW_GROUP_EP : SW_GROUP_CP);
    return SW_OK;
}

/* ---- a module ---- */

static const sw_stage_protocol *class_stage(const sw_module_class *class, const char *name)
{
    for (size_t i = 0; class->stages[i].name != NULL; i++) {
        if (strcmp(class->stages[i].name, name) == 0)
            return &class->stages[i];
    }
    return NULL;
}

static bool takes(const sw_stage_protocol *stage, const char *argument)
{
    for (size_t i = 0; stage->arguments[i] != NULL; i++) {
        if (strcmp(stage->arguments[i], argument) == 0)
            return true;
    }
    return false;
}

static sw_status check_stages(const sw_module *module, const sw_parallel_spec *spec, sw_error *err)
{
    for (size_t i = 0; has_stages(spec) && spec->stages[i].name != NULL; i++) {
        const sw_stage_protocol *declared = &spec->stages[i];
        const sw_stage_protocol *own = class_stage(module->class, declared->name);
        if (own == NULL)
            return SW_FAIL(err, SW_E_PLAN, "implement it in the class", "class %s has no stage '%s'",
                           module->class->name, declared->name);
        for (size_t k = 0; declared->arguments[k] != NULL; k++) {
            if (!takes(own, declared->arguments[k]))
                return SW_FAIL(err, SW_E_PLAN, "declare the arguments of the class",
                               "stage '%s' of class %s takes no '%s'", declared->name, module->class->name,
                               declared->arguments[k]);
        }
    }
    return SW_OK;
}

static bool is_same_io(const sw_io *a, const sw_io *b)
{
    bool is_same = a->n == b->n;

    for (uint32_t i = 0; i < a->n && is_same; i++) {
        is_same = strcmp(a->entries[i].name, b->entries[i].name) == 0;
        for (int k = 0; k < SW_ON_COUNT_; k++)
            is_same = is_same && sw_placement_equal(&a->entries[i].places.on[k], &b->entries[i].places.on[k]);
    }
    return is_same;
}

/* Explicit stages compute in the layout that comes and leave it as they declare. */
static sw_status check_contract(const sw_spec *sharding, sw_error *err)
{
    if (sharding == NULL)
        return SW_OK;
    if (sharding->n_stacks > 0)
        return SW_FAIL(err, SW_E_PLAN, "stack experts where their block is the boundary",
                       "explicit stages cannot have stacked experts of their own");
    if (!is_same_io(&sharding->in_src, &sharding->in_dst))
        return SW_FAIL(err, SW_E_PLAN, "make in_src and in_dst equal",
                       "explicit stages must get their inputs in the layout they compute in");
    if (sharding->out_dst.n > 0 && !is_same_io(&sharding->out_src, &sharding->out_dst))
        return SW_FAIL(err, SW_E_PLAN, "make out_src and out_dst equal",
                       "explicit stages must leave their output in the layout they declare");
    return SW_OK;
}

/* Every expert parameter is cut in whole experts, alike. */
static sw_status check_ownership(const sw_parallel_spec *spec, const sw_parallel_context *context,
                                 sw_error *err)
{
    const sw_spec *owner = context->sharding != NULL ? context->sharding : context->owner;
    uint32_t n_owned = 0;

    if (spec->n_experts < 1 || context->n_ep == 0 || spec->n_experts % context->n_ep != 0)
        return SW_FAIL(err, SW_E_PLAN, "use an ep that divides the experts",
                       "%" PRId64 " experts are not divided by ep=%" PRIu32, spec->n_experts, context->n_ep);
    for (uint32_t i = 0; owner != NULL && i < owner->n_params; i++) {
        const sw_facts *facts = &context->plan->facts[owner->params[i].facts];
        const sw_placement *on = &facts->places.on[SW_ON_EP];
        if (on->kind != SW_PLACE_SHARD)
            continue;
        if (on->dim != 0 || facts->shape->dims[0] != (uint64_t)spec->n_experts)
            return SW_FAIL(err, SW_E_PLAN, "cut experts over ep by S(0)",
                           "%.*s is not cut in whole experts over ep", (int)owner->params[i].path_length,
                           owner->params[i].path);
        n_owned++;
    }
    return n_owned > 0 ? SW_OK
                       : SW_FAIL(err, SW_E_PLAN, "cut experts over ep by S(0)",
                                 "no parameter is cut over ep: nobody owns the experts");
}

sw_status sw_validate_parallel_module(const sw_module *module, const sw_parallel_spec *spec,
                                      const sw_parallel_context *context, sw_error *err)
{
    SW_TRY(check_stages(module, spec, err));
    if (spec->kind != SW_BINDING_NONE && module->class->bind_parallel == NULL)
        return SW_FAIL(err, SW_E_PLAN, "define bind_parallel in the class", "class %s has no bind_parallel",
                       module->class->name);
    SW_TRY(check_contract(context->sharding, err));
    if (spec->kind == SW_BINDING_EP)
        SW_TRY(check_ownership(spec, context, err));
    return spec->validate == NULL ? SW_OK : spec->validate(module, context, err);
}
