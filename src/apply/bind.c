/* Binding (apply/bind.h): two passes over what the plan names. */
#include "apply/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apply/applied.h"
#include "apply/bound.h"
#include "apply/injection.h"
#include "base/glob.h"
#include "base/status.h"

enum { NAME = 1024 };

/* ---- specs ---- */

/* The protocol of a module that the plan names is that of its class. */
static sw_status spec_of(const sw_module *module, const sw_parallel_module *named, sw_parallel_spec *out,
                         sw_error *err)
{
    bool is_cp = strcmp(named->kind, "cp") == 0;

    *out = (sw_parallel_spec){.protocol = module->class->name,
                              .version = "1",
                              .kind = is_cp ? SW_BINDING_CP : SW_BINDING_EP,
                              .stages = module->class->stages,
                              .validate = sw_bound_validator(is_cp ? SW_BINDING_CP : SW_BINDING_EP),
                              .validate_materialized = module->class->validate_materialized,
                              .n_experts = (int64_t)module->net->settings.router.n_experts};
    return sw_parallel_spec_check(out, err);
}

/* ---- the first pass ---- */

typedef struct binder {
    sw_applied *applied;
    const sw_bind_options *options;
    sw_bound *prepared; /* by the first pass */
    sw_error *err;
} binder;

static const sw_bound *find(const sw_bound *first, const sw_module *module)
{
    while (first != NULL && first->module != module)
        first = first->next;
    return first;
}

static sw_parallel_context context_of(const binder *b, const sw_module *module)
{
    const sw_plan *plan = b->applied->plan;
    sw_parallel_context context = {.plan = plan, .n_cp = plan->cp, .n_ep = plan->ep};

    for (uint32_t s = 0; s < plan->n_specs; s++) {
        if (strcmp(plan->specs[s].fqn, module->fqn) == 0)
            context.sharding = &plan->specs[s];
        if (module->parent != NULL && strcmp(plan->specs[s].fqn, module->parent->fqn) == 0)
            context.owner = &plan->specs[s];
    }
    return context;
}

static sw_status prepare(binder *b, sw_module *module, const sw_parallel_spec *spec, const sw_spec *sharding)
{
    const sw_bound *before = find(b->applied->bound, module);
    sw_parallel_context context = context_of(b, module);

    if (spec->kind == SW_BINDING_NONE)
        return SW_OK;
    if (sharding != NULL)
        context.sharding = sharding;
    sw_cp_form form = sw_injected_form(context.owner, b->options->cp_form);
    if (before != NULL && sw_parallel_spec_equal(&before->spec, spec) && before->form == form &&
        module->stages == &before->stages)
        return SW_OK;
    if (before != NULL || find(b->prepared, module) != NULL)
        return SW_FAIL(b->err, SW_E_PLAN, "bind a module once", "%s already has a communication owner",
                       module->fqn);
    sw_status status = sw_validate_parallel_module(module, spec, &context, b->err);
    if (status != SW_OK) {
        sw_error_context(b->err, "%s", module->fqn);
        return status;
    }
    sw_bound *bound = sw_arena_zero(b->applied->arena, 1, sizeof *bound);
    if (bound == NULL)
        return sw_arena_fail(b->applied->arena, "bindings", b->err);
    *bound = (sw_bound){.next = b->prepared, .module = module, .spec = *spec, .form = form};
    b->prepared = bound;
    return sw_bound_make(bound, b->applied, b->err);
}

/* A module of a layer that the net does not run, or a core, which holds nothing, of such a module. */
static bool is_left_alone(const sw_net *net, const char *fqn)
{
    char parent[NAME];
    const char *last = strrchr(fqn, '.');

    (void)snprintf(parent, sizeof parent, "%.*s", last == NULL ? 0 : (int)(last - fqn), fqn);
    return sw_net_leaves_alone(net, fqn) ||
           (sw_net_module(net, parent) == NULL && sw_net_leaves_alone(net, parent));
}

static sw_status prepare_named(binder *b)
{
    const sw_plan *plan = b->applied->plan;

    for (uint32_t i = 0; i < plan->n_parallel; i++) {
        sw_module *module = sw_net_module(b->applied->net, plan->parallel[i].fqn);
        sw_parallel_spec spec;
        if (module == NULL && is_left_alone(b->applied->net, plan->parallel[i].fqn))
            continue;
        if (module == NULL)
            return SW_FAIL(b->err, SW_E_PLAN, "make the plan of this model", "%s: the net has no such module",
                           plan->parallel[i].fqn);
        SW_TRY(spec_of(module, &plan->parallel[i], &spec, b->err));
        SW_TRY(prepare(b, module, &spec, NULL));
    }
    return SW_OK;
}

static bool matches(const sw_native_request *request, const char *fqn)
{
    for (uint32_t i = 0; i < request->n_match; i++) {
        if (sw_glob_match(request->match[i], fqn))
            return true;
    }
    return false;
}

static sw_status prepare_requested(binder *b, const sw_native_request *request)
{
    const sw_net *net = b->applied->net;

    SW_TRY(sw_native_request_check(request, b->err));
    for (uint32_t i = 0; i < net->n_modules; i++) {
        if (matches(request, net->modules[i].fqn))
            SW_TRY(prepare(b, &net->modules[i], &request->spec,
                           request->sharding(b->applied->plan, net->modules[i].fqn)));
    }
    return SW_OK;
}

static sw_status prepare_all(binder *b)
{
    SW_TRY(prepare_named(b));
    for (uint32_t i = 0; i < b->options->n_requests; i++)
        SW_TRY(prepare_requested(b, &b->options->requests[i]));
    return SW_OK;
}

/* ---- the second pass ---- */

/* Cannot fail: every class was seen to have stages. */
static void bind_all(binder *b)
{
    while (b->prepared != NULL) {
        sw_bound *bound = b->prepared;
        b->prepared = bound->next;
        SW_IGNORE(bound->module->class->bind_parallel(bound->module, &bound->stages, NULL));
        bound->next = b->applied->bound;
        b->applied->bound = bound;
    }
}

sw_status sw_bind_parallel_modules(sw_net *net, const sw_bind_options *options, sw_error *err)
{
    binder b = {.applied = sw_applied_of(net), .options = options, .err = err};

    if (b.applied == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "apply a plan first", "no plan was applied to the net");
    sw_status status = sw_comm_agree(b.applied->active.comm, prepare_all(&b), err);
    if (status == SW_OK)
        bind_all(&b);
    return status;
}

sw_status sw_validate_materialized_modules(const sw_net *net, sw_error *err)
{
    const sw_applied *a = sw_applied_of(net);

    for (uint32_t i = 0; a != NULL && i < a->plan->n_parallel; i++) {
        const sw_module *module = sw_net_module(net, a->plan->parallel[i].fqn);
        if (module == NULL && is_left_alone(net, a->plan->parallel[i].fqn))
            continue;
        if (module == NULL || module->stages == &sw_stages_local)
            return SW_FAIL(err, SW_E_PLAN, "bind it after the plan was applied",
                           "%s: the plan spreads it over %s and it is not bound", a->plan->parallel[i].fqn,
                           a->plan->parallel[i].kind);
    }
    for (const sw_bound *bound = a == NULL ? NULL : a->bound; bound != NULL; bound = bound->next) {
        if (bound->spec.validate_materialized != NULL)
            SW_TRY(bound->spec.validate_materialized(bound->module, err));
    }
    return SW_OK;
}
