/* Injections (apply/injection.h): the names are those of plan/registry.h. */
#include "apply/injection.h"

#include <string.h>

#include "base/status.h"
#include "plan/registry.h"

typedef struct wrapper {
    const char *name;
    sw_cp_form form;
} wrapper;

static const wrapper wrappers[] = {
    {"cp_attention", SW_CP_GATHER },
    {"cp_ring",      SW_CP_RING   },
    {"cp_ulysses",   SW_CP_ULYSSES},
};

static const wrapper *wrapper_of(const sw_spec *spec)
{
    for (size_t i = 0; i < SW_COUNT(wrappers) && spec->inner_wrapper != NULL; i++) {
        if (strcmp(wrappers[i].name, spec->inner_wrapper) == 0)
            return &wrappers[i];
    }
    return NULL;
}

sw_cp_form sw_injected_form(const sw_spec *spec, sw_cp_form usual)
{
    const wrapper *named = spec == NULL ? NULL : wrapper_of(spec);
    return named == NULL ? usual : named->form;
}

/* ---- wrappers and computes ---- */

static sw_status check_wrapper(const sw_applied *a, const sw_spec *spec, sw_error *err)
{
    const char *name = spec->inner_wrapper;

    if (name == NULL)
        return SW_OK;
    if (wrapper_of(spec) == NULL)
        return SW_FAIL(err, SW_E_PLAN, "name cp_attention, cp_ring or cp_ulysses",
                       "%s: inner_wrapper '%.64s' can be planned but not run", spec->fqn, name);
    if (spec->region_dispatch != 0)
        return SW_FAIL(err, SW_E_PLAN, "add 'region_dispatch: false' to its override",
                       "%s: inner_wrapper '%.64s' without region_dispatch: false", spec->fqn, name);
    if (a->plan->cp < 2)
        return SW_FAIL(err, SW_E_PLAN, "add 'when: cp' to its override, or use a mesh with cp",
                       "%s: inner_wrapper '%.64s' on a mesh without cp", spec->fqn, name);
    if (strcmp(spec->inner_target, "self") != 0 && spec->inner_out_src.n == 0 && !spec->inner_first_input)
        return SW_FAIL(err, SW_E_PLAN, "add 'inner_out_src: first_input' to its override",
                       "%s: inner_wrapper '%.64s' round '%.64s' without inner_out_src", spec->fqn, name,
                       spec->inner_target);
    return SW_OK;
}

static sw_status check_pair(const sw_spec *spec, sw_error *err)
{
    if (spec->inner_target != NULL && spec->inner_wrapper == NULL)
        return SW_FAIL(err, SW_E_PLAN, "add 'inner_wrapper: NAME' to its override",
                       "%s: inner_target '%.64s' without inner_wrapper", spec->fqn, spec->inner_target);
    if (spec->inner_wrapper != NULL && spec->inner_target == NULL)
        return SW_FAIL(err, SW_E_PLAN, "add 'inner_target: self' to its override",
                       "%s: inner_wrapper '%.64s' without inner_target", spec->fqn, spec->inner_wrapper);
    return SW_OK;
}

static sw_status check_compute(const sw_spec *spec, sw_error *err)
{
    const char *name = spec->local_compute;

    if (name != NULL && !sw_registry_has(&sw_registry_built_in, SW_REGISTRY_COMPUTE, name))
        return SW_FAIL(err, SW_E_PLAN, "name ep_experts or grouped_experts",
                       "%s: local_compute '%.64s' can be planned but not run", spec->fqn, name);
    if (spec->region_dispatch > 0 && spec->inner_wrapper == NULL && name == NULL)
        return SW_FAIL(err, SW_E_PLAN, "leave region_dispatch out",
                       "%s: region_dispatch is true and nothing is injected", spec->fqn);
    return SW_OK;
}

/* ---- who does what crosses ranks ---- */

static bool is_bound(const sw_plan *plan, const sw_module *module)
{
    for (uint32_t i = 0; i < plan->n_parallel && module != NULL; i++) {
        if (strcmp(plan->parallel[i].fqn, module->fqn) == 0)
            return true;
    }
    return false;
}

static sw_status check_worker(const sw_applied *a, const sw_spec *spec, sw_error *err)
{
    const sw_module *module = sw_apply_module(a, spec);
    bool is_here = module != NULL && is_bound(a->plan, module->core);

    if (spec->needs_cp_attn && a->plan->cp > 1 && !is_here)
        return SW_FAIL(err, SW_E_PLAN, "list its core among parallel_modules, kind cp",
                       "%s: nobody brings the keys and values of cp=%u ranks together", spec->fqn,
                       a->plan->cp);
    if (spec->ep_size > 1 && !is_here)
        return SW_FAIL(err, SW_E_PLAN, "list its experts among parallel_modules, kind ep",
                       "%s: nobody takes tokens to the experts of ep=%u ranks", spec->fqn, spec->ep_size);
    return SW_OK;
}

sw_status sw_apply_check_injection(const sw_applied *a, const sw_spec *spec, sw_error *err)
{
    SW_TRY(check_pair(spec, err));
    SW_TRY(check_wrapper(a, spec, err));
    SW_TRY(check_compute(spec, err));
    return check_worker(a, spec, err);
}
