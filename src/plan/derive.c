/*
 * Deriving the specs. Parameters come in model order, so boundaries and the parameters in them do too. What a
 * placement depends on (class, shape, kind of boundary) repeats in every layer and expert: each different
 * case is worked out once and remembered.
 */
#include "plan/derive.h"

#include <string.h>

#include "base/status.h"
#include "plan/boundary.h"
#include "plan/class_words.h"
#include "plan/classify.h"
#include "plan/expert.h"
#include "plan/fault.h"
#include "plan/head_check.h"
#include "plan/intern.h"
#include "plan/override_match.h"
#include "plan/place.h"
#include "plan/quant.h"
#include "plan/tower.h"

/* What a remembered placement depends on; compared by its bytes. */
typedef struct memo_key {
    const sw_class *class_;
    const sw_shape *shape;
    const sw_quantization_module *own; /* settings of its module, NULL: the model's */
    uint32_t dtype;
    uint8_t type;
    uint8_t is_tower;
    uint8_t is_replicated;
    uint8_t is_stacked;
} memo_key;

const char *sw_relative_path(const sw_spec *spec, const char *fqn)
{
    return spec->fqn_length == 0 ? fqn : fqn + spec->fqn_length + 1;
}

/* A class with an override's layout in place of its own. Parts that are given make equal parts of anything.
 */
static void apply_layout(sw_class *class_, const sw_override_layout *layout, const char *name)
{
    class_->layout = layout->layout;
    class_->parts = layout->parts;
    class_->has_dim = layout->has_dim;
    class_->dim = layout->dim;
    class_->n_segments = layout->n_segments;
    class_->segments = layout->segments;
    if (layout->layout == SW_LAYOUT_QKV_STACKED)
        class_->layout = layout->parts != 0 ? SW_LAYOUT_STACKED : sw_stacked_layout(class_->role, name);
    if (class_->layout == SW_LAYOUT_STACKED && class_->parts == 0)
        class_->parts = 2;
}

static sw_status place_now(sw_plan *plan, const sw_spec *spec, uint32_t param, const sw_class *class_,
                           const sw_shape *stacked, uint32_t *facts_index, uint32_t *fault, sw_error *err)
{
    const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
    sw_place_where where = {spec->type, spec->is_tower, spec->tower != SW_TOWER_CUT, stacked != NULL};
    sw_place_what what = {.fqn = t->name,
                          .fqn_length = t->name_length,
                          .path = sw_relative_path(spec, t->name),
                          .class_ = class_,
                          .shape = stacked != NULL ? stacked : t->shape,
                          .dtype = t->dtype};
    sw_facts facts;

    sw_place(plan, where, &what, &facts, fault);
    *facts_index = sw_plan_intern_facts(plan, &facts);
    if (*facts_index == UINT32_MAX)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the placement of %s", t->name);
    return SW_OK;
}

sw_status sw_derive_facts(sw_plan *plan, const sw_spec *spec, uint32_t param, const sw_shape *stacked,
                          uint32_t *facts, uint32_t *fault, sw_error *err)
{
    const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
    const sw_class *class_ = sw_class_of(plan, param);
    bool is_new = false;

    const sw_override_layout *layout = sw_override_layout_for(plan, t->name, t->name_length);
    if (layout != NULL) {
        sw_class own = *class_;
        apply_layout(&own, layout, t->name);
        return place_now(plan, spec, param, &own, stacked, facts, fault, err);
    }
    memo_key key;
    memset(&key, 0, sizeof key);
    key.class_ = class_;
    key.shape = stacked != NULL ? stacked : t->shape;
    key.own = class_->companion == NULL
                  ? NULL
                  : sw_quant_module_of(plan, class_->companion, t->name, t->name_length);
    key.dtype = (uint32_t)t->dtype;
    key.type = (uint8_t)spec->type;
    key.is_tower = spec->is_tower;
    key.is_replicated = spec->tower != SW_TOWER_CUT;
    key.is_stacked = stacked != NULL;
    uint32_t *at = sw_map_put(&plan->by_memo, &key, sizeof key, plan->n_memos, &is_new);
    if (at == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to remember placements");
    if (!is_new) {
        *facts = plan->memos[*at].facts;
        *fault = plan->memos[*at].fault;
        if (*fault != UINT32_MAX)
            sw_plan_fault_again(plan, *fault);
        return SW_OK;
    }
    memo_key *kept = sw_arena_alloc(plan->arena, sizeof *kept);
    if (kept == NULL || !sw_plan_grow(plan->arena, (void **)&plan->memos, &plan->memos_capacity,
                                      plan->n_memos, sizeof *plan->memos))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to remember placements");
    memcpy(kept, &key, sizeof key);
    sw_map_rekey(at, kept);
    SW_TRY(place_now(plan, spec, param, class_, stacked, facts, fault, err));
    plan->memos[plan->n_memos++] = (sw_memo){*facts, *fault};
    return SW_OK;
}

/* ---- specs ---- */

static bool has_moe_above(const sw_model *model, const uint8_t *type, uint32_t module)
{
    for (uint32_t i = model->modules[module].parent; i != SW_NO_MODULE; i = model->modules[i].parent) {
        if (type[i] == SW_BOUNDARY_MOE_MLP)
            return true;
    }
    return false;
}

/* A residual block that holds a feed-forward of its own: the contract spans from its column to its row layer.
 */
static void note_span(sw_plan *plan, sw_spec *spec)
{
    const char *dot = strrchr(spec->fqn, '.');
    const char *last = dot == NULL ? spec->fqn : dot + 1;

    if (spec->type != SW_BOUNDARY_MLP || last[0] == '\0' || last[strspn(last, "0123456789")] != '\0')
        return;
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const char *end = memchr(p->path, '.', p->path_length);
        sw_role role = plan->facts[p->facts].role;
        const char **slot = role == SW_ROLE_COLWISE   ? &spec->span_entry
                            : role == SW_ROLE_ROWWISE ? &spec->span_exit
                                                      : NULL;
        if (slot == NULL || *slot != NULL || end == NULL)
            continue;
        *slot = sw_arena_copy(plan->arena, p->path, (size_t)(end - p->path));
        plan->is_out_of_memory = plan->is_out_of_memory || *slot == NULL;
    }
    (void)sw_plan_fault(plan, SW_SEVERITY_NOTE, "residual_block", spec->fqn, spec->fqn_length, "",
                        "the layer holds its feed-forward itself: the contract spans from %s to %s",
                        spec->span_entry == NULL ? "?" : spec->span_entry,
                        spec->span_exit == NULL ? "?" : spec->span_exit);
}

static sw_status new_spec(sw_plan *plan, const sw_grouping *grouping, uint32_t module, const sw_class *class_,
                          sw_spec **out, sw_error *err)
{
    const sw_module_node *m = &plan->model->modules[module];
    bool is_new = false;

    SW_TRY(sw_plan_spec_at(plan, m->fqn, m->fqn_length, out, &is_new, err));
    if (!is_new)
        return SW_OK;
    sw_spec *spec = *out;
    spec->module = module;
    spec->type = (sw_boundary_type)grouping->type[module];
    spec->is_tower = class_->is_tower;
    spec->layer = plan->model->params[m->first_param].layer;
    spec->in_moe = has_moe_above(plan->model, grouping->type, module);
    if (plan->ep_mode != SW_EP_NONE)
        return SW_OK; /* experts are stacked: far fewer names than parameters */
    spec->params = sw_arena_zero(plan->arena, grouping->n_held[module], sizeof *spec->params);
    spec->params_capacity = grouping->n_held[module];
    if (spec->params == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the parameters of %s", spec->fqn);
    return SW_OK;
}

static sw_status add_param(sw_plan *plan, sw_spec *spec, uint32_t param, sw_error *err)
{
    const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
    const char *path = sw_relative_path(spec, t->name);
    bool was_stacked = false;
    uint32_t facts = UINT32_MAX;
    uint32_t fault = UINT32_MAX;

    SW_TRY(sw_expert_stack(plan, spec, param, path, &was_stacked, err));
    if (was_stacked)
        return SW_OK;
    if (t->shape == NULL) {
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_unknown", t->name, t->name_length,
                            "add the shard files or a params.tsv",
                            "the index names it, but its shape is not known");
        return SW_OK;
    }
    SW_TRY(sw_derive_facts(plan, spec, param, NULL, &facts, &fault, err));
    sw_tower_note_fault(spec, fault);
    spec->has_bad_heads = spec->has_bad_heads || fault == SW_FAULT_HEADS;
    spec->has_fault = spec->has_fault || fault != UINT32_MAX;
    return sw_spec_add_param(plan, spec, (sw_spec_param){path, (uint32_t)strlen(path), param, facts}, err);
}

static sw_status fill(sw_plan *plan, const sw_grouping *grouping, sw_error *err)
{
    const sw_model *model = plan->model;
    uint32_t previous = SW_NO_MODULE;
    sw_spec *spec = NULL;

    for (uint32_t i = 0; i < model->n_params; i++) {
        if (spec == NULL || grouping->owner[i] != previous) {
            previous = grouping->owner[i];
            SW_TRY(new_spec(plan, grouping, previous, sw_class_of(plan, i), &spec, err));
        }
        SW_TRY(add_param(plan, spec, i, err));
        if (plan->n_facts > SW_PLAN_MAX_FACTS)
            return SW_FAIL(err, SW_E_LIMIT, "check that this is a model",
                           "more than %d parameters that differ in role, shape or placement",
                           SW_PLAN_MAX_FACTS);
    }
    return SW_OK;
}

/* A tower's tokens are those of whole images, not a slice of the text: every rank of cp holds them all. */
static void keep_whole_over_cp(sw_spec *spec)
{
    sw_io *const sides[] = {&spec->in_src, &spec->in_dst, &spec->out_src, &spec->out_dst};

    for (size_t i = 0; i < SW_COUNT(sides); i++) {
        for (uint32_t k = 0; k < sides[i]->n; k++)
            sides[i]->entries[k].places.on[SW_ON_CP] = (sw_placement){0};
    }
    spec->needs_cp_attn = false;
}

static sw_status contracts(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *spec = &plan->specs[i];
        const sw_template *t =
            sw_template_of(spec->tower != SW_TOWER_CUT ? SW_BOUNDARY_POINTWISE : spec->type);
        bool sp = plan->sequence_parallel && !spec->is_tower;
        SW_TRY(sw_template_contract_of(plan, t, sp, spec, err));
        if (spec->is_tower)
            keep_whole_over_cp(spec);
        SW_TRY(sw_expert_contract(plan, spec, err));
        if (spec->has_bad_heads)
            sw_report_heads(plan, spec);
        note_span(plan, spec);
    }
    return SW_OK;
}

sw_status sw_derive(sw_plan *plan, sw_error *err)
{
    sw_grouping grouping = {0};

    SW_TRY(sw_group(&grouping, plan, err));
    sw_status status = fill(plan, &grouping, err);
    sw_grouping_clear(&grouping);
    SW_TRY(status);
    SW_TRY(sw_expert_finish(plan, err));
    SW_TRY(sw_tower_finish(plan, err));
    return contracts(plan, err);
}
