/*
 * Where boundaries stand: pipeline stages (contiguous ranges of layers, what is before the layers on the
 * first, what is after them on the last), the terminal mark, the modules inside that run in parallel, special
 * handlers.
 */
#include "plan/finish.h"

#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/outer_norm.h"
#include "plan/role.h"

static sw_status make_stages(sw_plan *plan, sw_error *err)
{
    uint32_t n = sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);
    uint32_t layers = plan->n_layers;
    uint32_t at = 0;

    plan->stages = sw_arena_zero(plan->arena, n, sizeof *plan->stages);
    if (plan->stages == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %u stages", n);
    if (n > 1 && n > layers)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "pp_layers", "pp", 2, "use at most one stage a layer",
                            "pp=%u, but the model has %u layers", n, layers);
    plan->n_stages = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = layers / n + (i < layers % n ? 1 : 0);
        plan->stages[i] = (sw_stage){at, at + count, i == 0, i + 1 == n};
        at += count;
    }
    return SW_OK;
}

static uint32_t stage_of_layer(const sw_plan *plan, uint32_t layer)
{
    for (uint32_t i = 0; i < plan->n_stages; i++) {
        if (layer < plan->stages[i].end_layer)
            return i;
    }
    return plan->n_stages - 1; /* layers beside the layers (MTP) */
}

/* Length of what stands before the layer number: "model.layers." */
static size_t layer_prefix(const sw_spec *spec)
{
    for (size_t i = 0; i < spec->fqn_length; i++) {
        size_t n = strspn(spec->fqn + i, "0123456789");
        if ((i == 0 || spec->fqn[i - 1] == '.') && n > 0 &&
            (spec->fqn[i + n] == '.' || spec->fqn[i + n] == '\0'))
            return i;
    }
    return 0;
}

/* The decoder's own layers are the longest run of numbered modules; MTP modules beside them count from 0 too.
 */
static const sw_spec *main_layers(const sw_plan *plan)
{
    const sw_spec *highest = NULL;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        if (!s->is_tower && s->layer >= 0 && (highest == NULL || s->layer > highest->layer))
            highest = s;
    }
    return highest;
}

static void place_specs(sw_plan *plan)
{
    const sw_spec *main_ = main_layers(plan);
    size_t prefix = main_ == NULL ? 0 : layer_prefix(main_);
    bool after = false;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *s = &plan->specs[i];
        bool is_layer = main_ != NULL && s->layer >= 0 && !s->is_tower && layer_prefix(s) == prefix &&
                        memcmp(s->fqn, main_->fqn, prefix) == 0;
        bool is_end = after || s->type == SW_BOUNDARY_LM_HEAD;
        if (is_layer)
            s->pp_stage = stage_of_layer(plan, (uint32_t)s->layer);
        else if (sw_is_outer_norm(s))
            s->pp_stage = sw_stage_of_norm(plan, s, after);
        else
            s->pp_stage = is_end && !s->is_tower && s->type != SW_BOUNDARY_EMBED ? plan->n_stages - 1 : 0;
        after = after || is_layer;
    }
}

/* The output head where there is one, else the last boundary that was derived, else the last of all. */
static void mark_terminal(sw_plan *plan)
{
    sw_spec *last = NULL;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *s = &plan->specs[i];
        s->is_terminal = false;
        if (s->type == SW_BOUNDARY_LM_HEAD && s->layer < 0 && !s->is_tower) {
            last = s;
            break;
        }
        if ((!s->is_inserted || !plan->derive) && s->type != SW_BOUNDARY_WHOLE && !s->is_tower)
            last = s;
    }
    if (last != NULL)
        last->is_terminal = true;
}

static sw_status add_parallel(sw_plan *plan, const sw_spec *spec, const char *child, const char *kind,
                              sw_axis axis, uint32_t size, uint32_t *capacity, sw_error *err)
{
    const char *fqn = sw_arena_format(plan->arena, "%s.%s", spec->fqn, child);

    if (fqn == NULL || !sw_plan_grow(plan->arena, (void **)&plan->parallel, capacity, plan->n_parallel,
                                     sizeof *plan->parallel))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the parallel modules");
    plan->parallel[plan->n_parallel++] = (sw_parallel_module){fqn, kind, axis, size};
    return SW_OK;
}

static sw_status find_parallel(sw_plan *plan, sw_error *err)
{
    uint32_t capacity = 0;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        if (s->needs_cp_attn && plan->cp > 1 && !s->is_tower)
            SW_TRY(add_parallel(plan, s, "core", "cp", SW_AXIS_CP, plan->cp, &capacity, err));
        if (s->type == SW_BOUNDARY_MOE_MLP && plan->ep > 1)
            SW_TRY(add_parallel(plan, s, "experts", "ep", SW_AXIS_EP, plan->ep, &capacity, err));
    }
    return SW_OK;
}

static sw_status find_special(sw_plan *plan, sw_error *err)
{
    uint32_t capacity = 0;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        for (uint32_t k = 0; k < s->n_params; k++) {
            const sw_spec_param *p = &s->params[k];
            const sw_facts *f = &plan->facts[p->facts];
            if (f->handler == NULL)
                continue;
            const char *fqn = sw_arena_format(plan->arena, "%s%s%.*s", s->fqn, s->fqn_length == 0 ? "" : ".",
                                              (int)p->path_length, p->path);
            if (fqn == NULL || !sw_plan_grow(plan->arena, (void **)&plan->special, &capacity, plan->n_special,
                                             sizeof *plan->special))
                return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the special handlers");
            plan->special[plan->n_special++] = (sw_special){fqn, f->handler, sw_role_handler_reason(f->role)};
        }
    }
    return SW_OK;
}

/* A parameter with the role special makes its region a mixer: with a name that no mixer has it may be a slip.
 */
static void doubt_mixer(sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const char *handler = plan->facts[p->facts].handler;
        if (handler == NULL || strcmp(handler, sw_role_default_handler) != 0)
            continue;
        (void)sw_plan_fault(
            plan, SW_SEVERITY_WARNING, "mixer_unknown", spec->fqn, spec->fqn_length,
            "give the role special to parameters of a state-space or linear-attention mixer only",
            "the role special of '%.*s' makes the region a mixer, and nothing in it is cut",
            (int)p->path_length, p->path);
        return;
    }
}

/* A recurrence over the sequence cannot be cut over cp. */
static void check_mixers(sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        if (s->type != SW_BOUNDARY_MIXER)
            continue;
        doubt_mixer(plan, s);
        if (plan->cp > 1) {
            (void)sw_plan_fault(
                plan, SW_SEVERITY_ERROR, "mixer_cp", s->fqn, s->fqn_length, "use cp=1 for this model",
                "a state-space or linear-attention mixer runs over the whole sequence: cp=%u would "
                "break its recurrence",
                plan->cp);
        } else if (plan->tp > 1) {
            (void)sw_plan_fault(plan, SW_SEVERITY_NOTE, "mixer_replicated", s->fqn, s->fqn_length, "",
                                "the mixer is kept whole over tp=%u; its input is gathered", plan->tp);
        }
    }
}

/*
 * What a tower makes is whole, and each rank puts in its own tokens' part of it. That happens between
 * boundaries, in the model's own forward, so that no contract can say that its gradient is in parts.
 */
static void check_towers(sw_plan *plan)
{
    bool on_tp = plan->tp > 1 && plan->sequence_parallel;
    bool on_cp = plan->cp > 1;
    bool has_tower = false;

    for (uint32_t i = 0; i < plan->n_specs; i++)
        has_tower = has_tower || plan->specs[i].is_tower;
    if (has_tower && (on_tp || on_cp)) {
        (void)sw_plan_fault(plan, SW_SEVERITY_NOTE, "tower_exit", "", 0,
                            "sum the gradient of the tower's output over these axes before its backward",
                            "a tower's output is whole, and each rank puts in what falls on its own tokens: "
                            "its gradient is a partial sum over %s%s%s",
                            on_tp ? "tp" : "", on_tp && on_cp ? " and " : "", on_cp ? "cp" : "");
    }
}

sw_status sw_finish_stages(sw_plan *plan, sw_error *err)
{
    SW_TRY(make_stages(plan, err));
    place_specs(plan);
    mark_terminal(plan);
    check_mixers(plan);
    check_towers(plan);
    SW_TRY(find_parallel(plan, err));
    return find_special(plan, err);
}
