/*
 * The pipeline stage of a norm outside the layers. A family's table has put its names in model order already;
 * a norm that no table knows goes by its name, and what that does not tell is guessed, with a warning.
 */
#include "plan/outer_norm.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/fault.h"

/* Names that the norm after the last layer has in most families. */
static const char *const final_norms[] = {
    "norm", "ln_f", "norm_f", "final_layernorm", "final_layer_norm", "final_norm", "post_layernorm",
};

static bool has_row(const sw_plan *plan, const sw_spec *spec)
{
    const sw_family *const *family = sw_families;
    char name[1024];

    while (*family != NULL && strcmp((*family)->name, plan->family) != 0)
        family++;
    if (*family == NULL || spec->n_params == 0)
        return false;
    int n = snprintf(name, sizeof name, "%s.%.*s", spec->fqn, (int)spec->params[0].path_length,
                     spec->params[0].path);
    return n > 0 && (size_t)n < sizeof name && sw_family_match(*family, name, (size_t)n, NULL) != NULL;
}

static bool is_final(const sw_spec *spec)
{
    const char *dot = strrchr(spec->fqn, '.');
    const char *last = dot == NULL ? spec->fqn : dot + 1;

    for (size_t i = 0; i < SW_COUNT(final_norms); i++) {
        if (strcmp(last, final_norms[i]) == 0)
            return true;
    }
    return false;
}

bool sw_is_outer_norm(const sw_spec *spec)
{
    return spec->type == SW_BOUNDARY_NORM && spec->layer < 0 && !spec->is_tower;
}

/* A model has a final norm: where nothing else is one, a norm of another name must be. */
uint32_t sw_stage_of_norm(sw_plan *plan, const sw_spec *spec, bool is_after)
{
    bool has_final = false;

    if (has_row(plan, spec))
        return is_after ? plan->n_stages - 1 : 0;
    if (is_final(spec) || plan->n_stages == 1)
        return plan->n_stages - 1;
    for (uint32_t i = 0; i < plan->n_specs && !has_final; i++)
        has_final = sw_is_outer_norm(&plan->specs[i]) && is_final(&plan->specs[i]);
    uint32_t stage = has_final ? 0 : plan->n_stages - 1;
    (void)sw_plan_fault(
        plan, SW_SEVERITY_WARNING, "stage_guessed", spec->fqn, spec->fqn_length,
        "check that the norm is used there",
        "no table says whether the norm stands before or after the layers: it is put on stage %u", stage);
    return stage;
}
