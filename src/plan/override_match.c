/* Names, patterns and layouts of overrides: see override_match.h. */
#include "plan/override_match.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

/* ---- steps ---- */

sw_status sw_override_steps_status(const sw_plan *plan, sw_error *err)
{
    if (plan->override_steps <= SW_OVERRIDE_MAX_STEPS)
        return SW_OK;
    return SW_FAIL(err, SW_E_LIMIT, "write fewer patterns, or exact names",
                   "matching the overrides with %zu parameters and %" PRIu32
                   " modules takes more than %" PRIu64 " steps",
                   plan->model->n_params, plan->model->n_modules, SW_OVERRIDE_MAX_STEPS);
}

bool sw_override_glob(sw_plan *plan, const sw_glob *pattern, const char *name, size_t length)
{
    if (plan->override_steps > SW_OVERRIDE_MAX_STEPS)
        return false;
    return sw_glob_match_in(pattern, name, length, &plan->override_steps);
}

/* ---- layouts ---- */

/* A layout and the parameters it speaks of: by their own name, or by that of their module. */
struct sw_layout_rule {
    sw_glob pattern;
    const sw_override_layout *layout;
    const sw_override_entry *entry;
    bool is_met;
};

static const char *rule_pattern(sw_plan *plan, const sw_override_entry *e, const sw_override_layout *layout)
{
    if (layout->path == NULL)
        return e->match;
    return sw_arena_format(plan->arena, "%s%s%s", e->match, e->match[0] == '\0' ? "" : ".", layout->path);
}

sw_status sw_override_layouts_note(sw_plan *plan, const sw_overrides *overrides, sw_error *err)
{
    size_t n = 0;

    for (uint32_t i = 0; i < overrides->n_entries; i++)
        n += overrides->entries[i].n_layouts;
    if (n == 0)
        return SW_OK;
    plan->layout_rules = sw_arena_zero(plan->arena, n, sizeof *plan->layout_rules);
    if (plan->layout_rules == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu layouts", n);
    for (uint32_t i = 0; i < overrides->n_entries; i++) {
        const sw_override_entry *e = &overrides->entries[i];
        for (uint32_t k = 0; k < e->n_layouts && sw_override_holds(e, plan); k++) {
            const char *pattern = rule_pattern(plan, e, &e->layouts[k]);
            if (pattern == NULL)
                return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu layouts", n);
            plan->layout_rules[plan->n_layout_rules++] =
                (sw_layout_rule){sw_glob_of(pattern), &e->layouts[k], e, false};
        }
    }
    return SW_OK;
}

/* Length of a name without its last segment; 0 when it has one only. */
static size_t stem_of(const char *fqn, size_t length)
{
    const char *dot = memrchr(fqn, '.', length);
    return dot == NULL ? 0 : (size_t)(dot - fqn);
}

/* "a.b.qkv_proj" stands for its weight and its bias too: `stem` is the name without that. */
static bool speaks_of(sw_plan *plan, sw_layout_rule *rule, const char *fqn, size_t length, size_t stem)
{
    bool hit = sw_override_glob(plan, &rule->pattern, fqn, length) ||
               (stem > 0 && sw_override_glob(plan, &rule->pattern, fqn, stem));

    rule->is_met = rule->is_met || hit;
    return hit;
}

const sw_override_layout *sw_override_layout_for(sw_plan *plan, const char *fqn, size_t length)
{
    size_t stem = plan->n_layout_rules == 0 ? 0 : stem_of(fqn, length);

    for (uint32_t i = plan->n_layout_rules; i-- > 0;) {
        if (speaks_of(plan, &plan->layout_rules[i], fqn, length, stem))
            return plan->layout_rules[i].layout;
    }
    return NULL;
}

/* Placing met most of them; what it did not ask for (a later layout won, experts are stacked) is asked here.
 */
static bool is_met(sw_plan *plan, sw_layout_rule *rule)
{
    for (uint32_t i = 0; i < plan->model->n_params && !rule->is_met; i++) {
        const sw_tensor_entry *t = sw_model_tensor(plan->model, i);
        (void)speaks_of(plan, rule, t->name, t->name_length, stem_of(t->name, t->name_length));
    }
    return rule->is_met;
}

bool sw_override_layout_is_met(sw_plan *plan, const sw_override_entry *entry)
{
    for (uint32_t i = 0; i < plan->n_layout_rules; i++) {
        if (plan->layout_rules[i].entry == entry && is_met(plan, &plan->layout_rules[i]))
            return true;
    }
    return false;
}

/* ---- names ---- */

void sw_override_names_clear(sw_override_names *names)
{
    sw_map_clear(&names->modules);
    sw_free(names->param_of);
    names->param_of = NULL;
}

sw_status sw_override_find_module(sw_override_names *names, const char *fqn, size_t length, uint32_t *out,
                                  sw_error *err)
{
    const sw_model *model = names->model;

    for (uint32_t i = names->modules.n_used; i < model->n_modules; i++) { /* all of them, once */
        const sw_module_node *m = &model->modules[i];
        bool is_new = false;
        if (sw_map_put(&names->modules, m->fqn, m->fqn_length, i, &is_new) == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the names of %" PRIu32 " modules",
                           model->n_modules);
    }
    const uint32_t *at = sw_map_find(&names->modules, fqn, length);
    *out = at == NULL ? SW_NO_MODULE : *at;
    return SW_OK;
}

sw_status sw_override_find_param(sw_override_names *names, const char *fqn, size_t length, uint32_t *out,
                                 sw_error *err)
{
    const sw_model *model = names->model;
    const sw_tensor_entry *t = sw_tensor_list_find(&model->list, fqn, length);

    *out = UINT32_MAX;
    if (t == NULL)
        return SW_OK;
    if (names->param_of == NULL) {
        names->param_of = sw_alloc_zero(model->n_params, sizeof *names->param_of);
        if (names->param_of == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the names of %zu parameters",
                           model->n_params);
        for (uint32_t i = 0; i < model->n_params; i++)
            names->param_of[model->params[i].tensor] = i;
    }
    *out = names->param_of[t - model->list.tensors];
    return SW_OK;
}
