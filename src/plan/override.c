/*
 * Phase 4.5: overrides onto the derived specs, entry by entry in the order given; the later entry wins per
 * field. An exact FQN of a boundary merges; of another module it inserts; a glob merges into the boundaries
 * it matches and, when it declares a contract, inserts at the other modules it matches. What an override says
 * is copied: a plan never points into the overrides.
 */
#include "plan/override.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "plan/classify.h"
#include "plan/cut_conflict.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/layout.h"
#include "plan/override_match.h"
#include "plan/place.h"

/* What all entries share. */
typedef struct application {
    sw_override_names names;
    uint32_t n_guesses; /* names for which a nearest one was looked for */
} application;

typedef struct applying {
    sw_plan *plan;
    application *shared;
    const sw_override_entry *entry;
    sw_glob pattern;  /* its match */
    const char *note; /* "FILE:LINE match", in the plan; NULL: not made yet */
    sw_error *err;
} applying;

enum {
    MOST_GUESSES = 16,  /* beyond them nobody reads on */
    STEPS_OF_ENTRY = 32 /* what a copied name costs, against one compared character */
};

static sw_status no_memory(const applying *a)
{
    return SW_FAIL(a->err, SW_E_NO_MEMORY, "", "no memory for an override");
}

/* Count `n` names that are copied or looked up. */
static sw_status count_steps(applying *a, uint64_t n)
{
    a->plan->override_steps += STEPS_OF_ENTRY * n;
    return sw_override_steps_status(a->plan, a->err);
}

bool sw_override_holds(const sw_override_entry *entry, const sw_plan *plan)
{
    switch (entry->when) {
    case SW_WHEN_TP:
        return plan->tp > 1;
    case SW_WHEN_CP:
        return plan->cp > 1;
    case SW_WHEN_EP:
        return plan->ep > 1;
    default:
        return true;
    }
}

static void complain(applying *a, const char *code, const char *fqn, const char *help, const char *what)
{
    (void)sw_plan_fault(a->plan, SW_SEVERITY_ERROR, code, fqn, strlen(fqn), help, "%s: %s", a->entry->source,
                        what);
}

/* ---- contract fields ---- */

static sw_status copy_io(applying *a, sw_io *out, const sw_override_io *field)
{
    SW_TRY(count_steps(a, 8 * (uint64_t)field->n));
    out->is_declared = true;
    out->n = field->n;
    out->entries = sw_arena_zero(a->plan->arena, field->n + 1, sizeof *out->entries);
    if (out->entries == NULL)
        return no_memory(a);
    for (uint32_t i = 0; i < field->n; i++) {
        sw_io_entry *e = &out->entries[i];
        e->name = sw_arena_format(a->plan->arena, "%s", field->entries[i].name);
        if (e->name == NULL)
            return no_memory(a);
        for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
            if (!a->plan->is_active[axis] || (axis == SW_ON_EP && a->plan->ep_mode != SW_EP_AXIS))
                continue; /* canonical but inactive axes are tolerated and dropped */
            e->places.present |= (uint8_t)(1U << axis);
            e->places.on[axis] = field->entries[i].places.on[axis];
        }
    }
    return SW_OK;
}

static sw_status merge_io(applying *a, sw_io *io, const sw_override_io *field)
{
    if (field->mode == SW_FIELD_UNSET)
        return SW_OK;
    if (field->mode == SW_FIELD_NONE) {
        *io = (sw_io){0};
        return SW_OK;
    }
    return copy_io(a, io, field);
}

/* ---- params ---- */

static uint32_t find_path(const sw_spec *spec, const char *path)
{
    size_t n = strlen(path);

    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (spec->params[i].path_length == n && memcmp(spec->params[i].path, path, n) == 0)
            return i;
    }
    return UINT32_MAX;
}

/* The model's parameter at fqn.path, or UINT32_MAX. */
static sw_status find_param(applying *a, const char *fqn, const char *path, uint32_t *out)
{
    char name[2048];
    int n = snprintf(name, sizeof name, "%s%s%s", fqn, fqn[0] == '\0' ? "" : ".", path);

    *out = UINT32_MAX;
    if (n <= 0 || (size_t)n >= sizeof name)
        return SW_OK;
    return sw_override_find_param(&a->shared->names, name, (size_t)n, out, a->err);
}

static void give_places(applying *a, sw_facts *facts, const sw_places *said)
{
    memset(&facts->places, 0, sizeof facts->places);
    for (int axis = 0; axis < SW_ON_COUNT_; axis++) {
        if (!a->plan->is_active[axis])
            continue;
        facts->places.present |= (uint8_t)(1U << axis);
        facts->places.on[axis].kind = said->on[axis].kind;
        facts->places.on[axis].dim = said->on[axis].dim;
        if (said->on[axis].cut != NULL)
            facts->places.on[axis].cut =
                sw_plan_cut(a->plan, said->on[axis].cut->n_groups, said->on[axis].cut->segments,
                            said->on[axis].cut->n_segments);
    }
    facts->is_rank0_only = false;
    facts->is_placed = true;
}

/* An alias has no tensor of its own: its placement is that of the name it is tied to. */
static bool is_tied_conflict(applying *a, const sw_spec *spec, const sw_io_entry *said)
{
    const sw_plan *plan = a->plan;

    for (uint32_t i = 0; spec->is_tied_alias && i < plan->n_tied; i++) {
        const char *dot = strrchr(plan->tied[i].first, '.');
        const sw_spec *stored =
            dot == NULL ? NULL
                        : sw_plan_find_spec(plan, plan->tied[i].first, (size_t)(dot - plan->tied[i].first));
        uint32_t at = stored == NULL ? UINT32_MAX : find_path(stored, dot + 1);
        if (at == UINT32_MAX)
            continue;
        const sw_facts *f = &plan->facts[stored->params[at].facts];
        if (!sw_placement_equal(&f->places.on[SW_ON_TP], &said->places.on[SW_ON_TP])) {
            (void)sw_plan_fault(a->plan, SW_SEVERITY_ERROR, "tied_conflict", spec->fqn, spec->fqn_length,
                                "override both names alike, or neither",
                                "%s: '%s' of %s is tied to %s, which is cut differently over tp",
                                a->entry->source, said->name, spec->fqn, plan->tied[i].first);
        }
        return true;
    }
    return false;
}

static bool may_guess(applying *a)
{
    return a->shared->n_guesses++ < MOST_GUESSES;
}

static void unknown_param(applying *a, const sw_spec *spec, const char *path)
{
    const char *words[256];
    char help[256];
    size_t n = 0;

    for (uint32_t i = 0; i < spec->n_params && n < SW_COUNT(words); i++) {
        if (spec->params[i].path[spec->params[i].path_length] == '\0')
            words[n++] = spec->params[i].path;
    }
    const char *near_ = may_guess(a) ? sw_nearest(path, words, n) : NULL;
    (void)snprintf(help, sizeof help,
                   near_ == NULL ? "name a parameter of this module, relative to it" : "did you mean '%s'?",
                   near_);
    (void)sw_plan_fault(a->plan, SW_SEVERITY_ERROR, "override_param", spec->fqn, spec->fqn_length, help,
                        "%s: params names '%s', which the module does not hold", a->entry->source, path);
}

static void conflict(applying *a, const sw_spec *spec, const char *path, const sw_placement *derived,
                     const sw_placement *said, const char *axis)
{
    char from[256];
    char to[256];

    (void)sw_placement_text(derived, from, sizeof from);
    (void)sw_placement_text(said, to, sizeof to);
    (void)sw_plan_fault(
        a->plan, SW_SEVERITY_ERROR, "cut_conflict", spec->fqn, spec->fqn_length,
        "leave the cut as it is derived, replicate it, or state another storage with `layout:`",
        "%s: '%s' gets %s over %s, but as it is stored and used it is cut %s", a->entry->source, path, to,
        axis, from);
}

/* What is known of a parameter stands against an override: how it is stored, and that some are never cut. */
static void check_against_derived(applying *a, const sw_spec *spec, const char *path, const sw_facts *derived,
                                  const sw_places *said)
{
    static const int axes[] = {SW_ON_TP, SW_ON_EP};

    for (size_t i = 0; i < SW_COUNT(axes) && !derived->is_placed; i++) {
        const int on = axes[i];
        if (sw_cut_conflicts(a->plan, derived, said, on))
            conflict(a, spec, path, &derived->places.on[on], &said->on[on], on == SW_ON_TP ? "tp" : "ep");
    }
}

/* One entry of `params:`; `at` is its index in the spec or UINT32_MAX. */
static sw_status set_param(applying *a, sw_spec *spec, const sw_io_entry *said, uint32_t at)
{
    sw_plan *plan = a->plan;
    sw_facts facts;
    sw_spec_param fresh = {0};

    if (at != UINT32_MAX) {
        facts = plan->facts[spec->params[at].facts];
        check_against_derived(a, spec, said->name, &facts, &said->places);
    } else {
        uint32_t param = UINT32_MAX;
        SW_TRY(find_param(a, spec->fqn, said->name, &param));
        if (param == UINT32_MAX) {
            if (!is_tied_conflict(a, spec, said))
                unknown_param(a, spec, said->name);
            return SW_OK;
        }
        const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
        sw_place_where where = {SW_BOUNDARY_WHOLE, false, true, false};
        sw_place_what what = {t->name,  t->name_length, said->name, sw_class_of(plan, param),
                              t->shape, t->dtype};
        uint32_t fault = UINT32_MAX;
        if (t->shape == NULL)
            return SW_OK; /* reported by the derivation */
        sw_place(plan, where, &what, &facts, &fault);
        fresh = (sw_spec_param){t->name + (spec->fqn_length == 0 ? 0 : spec->fqn_length + 1),
                                (uint32_t)strlen(said->name), param, 0};
    }
    give_places(a, &facts, &said->places);
    uint32_t index = sw_plan_intern_facts(plan, &facts);
    if (index == UINT32_MAX)
        return no_memory(a);
    if (at != UINT32_MAX) {
        spec->params[at].facts = index;
        return SW_OK;
    }
    fresh.facts = index;
    return sw_spec_add_param(plan, spec, fresh, a->err);
}

/* Names that a replacement of the whole field drops are said: nobody cuts them any more. */
static void warn_dropped(applying *a, const sw_spec *old, const sw_map *now)
{
    char list[400];
    size_t used = 0;
    uint32_t n = 0;

    list[0] = '\0';
    for (uint32_t i = 0; i < old->n_params; i++) {
        const sw_spec_param *p = &old->params[i];
        if (sw_map_find(now, p->path, p->path_length) != NULL)
            continue;
        if (used + p->path_length + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", n == 0 ? "" : ", ",
                                     (int)p->path_length, p->path);
        n++;
    }
    if (n > 0) {
        (void)sw_plan_fault(a->plan, SW_SEVERITY_WARNING, "override_drops", old->fqn, old->fqn_length,
                            "use `params: {+: {...}}` to change single parameters",
                            "%s: params replaces the whole field and drops %u derived placements: %s",
                            a->entry->source, n, list);
    }
}

/* Paths of a spec's parameters -> index. */
static sw_status index_paths(applying *a, const sw_spec *spec, sw_map *out)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        bool is_new = false;
        if (sw_map_put(out, spec->params[i].path, spec->params[i].path_length, i, &is_new) == NULL)
            return no_memory(a);
    }
    return count_steps(a, spec->n_params / 4);
}

static uint32_t path_at(const sw_map *paths, const char *path)
{
    const uint32_t *at = sw_map_find(paths, path, strlen(path));
    return at == NULL ? UINT32_MAX : *at;
}

static sw_status patch_params(applying *a, sw_spec *spec, const sw_override_io *field)
{
    sw_map paths SW_AUTO(sw_map_clear) = {0};

    SW_TRY(index_paths(a, spec, &paths));
    for (uint32_t i = 0; i < field->n; i++)
        SW_TRY(set_param(a, spec, &field->entries[i], path_at(&paths, field->entries[i].name)));
    return SW_OK;
}

static sw_status replace_params(applying *a, sw_spec *spec, const sw_override_io *field)
{
    sw_map before SW_AUTO(sw_map_clear) = {0};
    sw_map now SW_AUTO(sw_map_clear) = {0};
    sw_spec old = *spec;

    SW_TRY(index_paths(a, &old, &before));
    spec->params = NULL;
    spec->n_params = 0;
    spec->params_capacity = 0;
    for (uint32_t i = 0; i < field->n; i++) {
        uint32_t at = path_at(&before, field->entries[i].name);
        if (at != UINT32_MAX) {
            SW_TRY(sw_spec_add_param(a->plan, spec, old.params[at], a->err));
            at = spec->n_params - 1;
        }
        SW_TRY(set_param(a, spec, &field->entries[i], at));
    }
    SW_TRY(index_paths(a, spec, &now));
    /* A stack whose name is gone covers its sources no longer. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        if (path_at(&now, spec->stacks[i].path) != UINT32_MAX)
            spec->stacks[kept++] = spec->stacks[i];
    }
    spec->n_stacks = kept;
    if (field->n > 0)
        warn_dropped(a, &old, &now);
    return SW_OK;
}

static sw_status merge_params(applying *a, sw_spec *spec, const sw_override_io *field)
{
    if (field->mode == SW_FIELD_UNSET)
        return SW_OK;
    SW_TRY(count_steps(a, 4 * (uint64_t)field->n));
    return field->mode == SW_FIELD_PATCH ? patch_params(a, spec, field) : replace_params(a, spec, field);
}

/* ---- one entry onto one spec ---- */

static sw_status copy_words(applying *a, const char ***out, uint32_t *n_out, const char **words, uint32_t n)
{
    const char **copy = sw_arena_zero(a->plan->arena, n + 1, sizeof *copy);
    bool ok = copy != NULL;

    SW_TRY(count_steps(a, 4 * (uint64_t)n));
    for (uint32_t i = 0; ok && i < n; i++) {
        copy[i] = sw_arena_format(a->plan->arena, "%s", words[i]);
        ok = copy[i] != NULL;
    }
    if (!ok)
        return no_memory(a);
    *out = copy;
    *n_out = n;
    return SW_OK;
}

static sw_status copy_word(applying *a, const char **slot, const char *word)
{
    if (word == NULL)
        return SW_OK;
    *slot = sw_arena_format(a->plan->arena, "%s", word);
    return *slot == NULL ? no_memory(a) : SW_OK;
}

static sw_status note_applied(applying *a, sw_spec *spec)
{
    if (a->note == NULL)
        a->note = sw_arena_format(a->plan->arena, "%s %s", a->entry->source, a->entry->match);
    if (a->note == NULL || !sw_plan_grow(a->plan->arena, (void **)&spec->overrides, &spec->overrides_capacity,
                                         spec->n_overrides, sizeof *spec->overrides))
        return no_memory(a);
    spec->overrides[spec->n_overrides++] = a->note;
    return SW_OK;
}

static sw_status merge(applying *a, sw_spec *spec)
{
    const sw_override_entry *e = a->entry;

    SW_TRY(count_steps(a, 4));
    SW_TRY(merge_params(a, spec, &e->params));
    SW_TRY(merge_io(a, &spec->in_src, &e->in_src));
    SW_TRY(merge_io(a, &spec->in_dst, &e->in_dst));
    SW_TRY(merge_io(a, &spec->out_src, &e->out_src));
    SW_TRY(merge_io(a, &spec->out_dst, &e->out_dst));
    if (e->out_names_mode == SW_FIELD_NONE)
        spec->n_out_names = 0;
    if (e->out_names_mode == SW_FIELD_VALUE)
        SW_TRY(copy_words(a, &spec->out_names, &spec->n_out_names, e->out_names, e->n_out_names));
    if (e->has_tp_divide)
        SW_TRY(copy_words(a, &spec->tp_divide, &spec->n_tp_divide, e->tp_divide, e->n_tp_divide));
    if (e->region_dispatch >= 0)
        spec->region_dispatch = e->region_dispatch;
    SW_TRY(copy_word(a, &spec->inner_target, e->inner_target));
    SW_TRY(copy_word(a, &spec->inner_wrapper, e->inner_wrapper));
    SW_TRY(copy_word(a, &spec->local_compute, e->local_compute));
    if (e->has_inner_out_src) {
        spec->inner_first_input = e->inner_first_input;
        SW_TRY(copy_io(a, &spec->inner_out_src, &e->inner_out_src));
    }
    return note_applied(a, spec);
}

static bool is_value(const sw_override_io *field)
{
    return field->mode == SW_FIELD_VALUE || field->mode == SW_FIELD_PATCH;
}

static bool declares_contract(const sw_override_entry *e)
{
    return is_value(&e->params) || is_value(&e->in_src) || is_value(&e->in_dst) || is_value(&e->out_src) ||
           is_value(&e->out_dst);
}

static bool has_word(const sw_override_entry *e)
{
    return e->params.mode == SW_FIELD_NONE || e->in_src.mode == SW_FIELD_NONE ||
           e->in_dst.mode == SW_FIELD_NONE || e->out_src.mode == SW_FIELD_NONE ||
           e->out_dst.mode == SW_FIELD_NONE;
}

static sw_status insert(applying *a, const char *fqn, uint32_t length, uint32_t module)
{
    sw_spec *spec = NULL;
    bool is_new = false;
    char name[512];

    (void)snprintf(name, sizeof name, "%.*s", (int)length, fqn);
    if (has_word(a->entry)) {
        complain(a, "override_insert", name, "give the field's placements",
                 a->plan->derive ? "no boundary is derived there, so nothing can be inherited or cleared"
                                 : "with derive: false nothing can be inherited or cleared");
        return SW_OK;
    }
    if (!declares_contract(a->entry)) {
        char help[800];
        (void)snprintf(
            help, sizeof help,
            "declare one: match: %s, params: {}, in_src: {hidden_states: {tp: replicate}}, in_dst: ..., "
            "out_src: {tp: partial}, out_dst: ...",
            name);
        complain(a, "override_insert", name, help,
                 "no boundary is derived there, and the entry declares no contract");
        return SW_OK;
    }
    SW_TRY(sw_plan_spec_at(a->plan, fqn, length, &spec, &is_new, a->err));
    spec->type = SW_BOUNDARY_CUSTOM;
    spec->is_inserted = true;
    spec->module = module;
    spec->in_src.is_declared = true;
    spec->in_dst.is_declared = true;
    if (module != SW_NO_MODULE && a->plan->model->n_params > 0)
        spec->layer = a->plan->model->params[a->plan->model->modules[module].first_param].layer;
    return merge(a, spec);
}

/* ---- matching ---- */

static void unmatched(applying *a)
{
    const sw_plan *plan = a->plan;
    const char *words[4096];
    char help[256];
    size_t n = 0;

    for (uint32_t i = 0; i < plan->n_specs && n < SW_COUNT(words); i++)
        words[n++] = plan->specs[i].fqn;
    const char *near_ = may_guess(a) ? sw_nearest(a->entry->match, words, n) : NULL;
    (void)snprintf(help, sizeof help,
                   near_ == NULL ? "list the boundaries with `shardwright plan`" : "did you mean '%s'?",
                   near_);
    complain(a, "override_unmatched", a->entry->match, help, "no module of the model has this name");
}

static sw_status apply_exact(applying *a)
{
    const char *match = a->entry->match;
    size_t length = strlen(match);
    sw_spec *spec = sw_plan_find_spec(a->plan, match, length);
    uint32_t module = SW_NO_MODULE;

    if (spec != NULL)
        return merge(a, spec);
    SW_TRY(sw_override_find_module(&a->shared->names, match, length, &module, a->err));
    if (module != SW_NO_MODULE)
        return insert(a, match, (uint32_t)length, module);
    unmatched(a);
    return SW_OK;
}

/* Modules that match and are no boundary: insert there, or say that there is nothing to inherit. */
static sw_status apply_misses(applying *a, uint32_t *n_misses)
{
    const sw_model *model = a->plan->model;
    bool inserts = declares_contract(a->entry);
    char list[320];
    size_t used = 0;

    list[0] = '\0';
    for (uint32_t i = 0; i < model->n_modules; i++) {
        const sw_module_node *m = &model->modules[i];
        if (!sw_override_glob(a->plan, &a->pattern, m->fqn, m->fqn_length) ||
            sw_plan_find_spec(a->plan, m->fqn, m->fqn_length) != NULL)
            continue;
        (*n_misses)++;
        if (inserts)
            SW_TRY(insert(a, m->fqn, m->fqn_length, i));
        else if (*n_misses <= 8 && used + m->fqn_length + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", used == 0 ? "" : ", ",
                                     (int)m->fqn_length, m->fqn);
    }
    if (*n_misses > 0 && !inserts) {
        char what[400];
        (void)snprintf(what, sizeof what, "the pattern also matches %u modules that are no boundary: %s",
                       *n_misses, list);
        complain(a, "override_insert", a->entry->match, "narrow the pattern, or declare a contract for them",
                 what);
    }
    return SW_OK;
}

static sw_status apply_glob(applying *a, bool strict)
{
    uint32_t n_hits = 0;
    uint32_t n_misses = 0;
    uint32_t n_before = a->plan->n_specs; /* what is inserted stands behind them */

    SW_TRY(apply_misses(a, &n_misses));
    for (uint32_t i = 0; i < n_before; i++) {
        const sw_spec *spec = &a->plan->specs[i];
        if (!sw_override_glob(a->plan, &a->pattern, spec->fqn, spec->fqn_length))
            continue;
        n_hits++;
        SW_TRY(merge(a, &a->plan->specs[i]));
    }
    SW_TRY(sw_override_steps_status(a->plan, a->err));
    if (n_hits != 0 || n_misses != 0)
        return SW_OK;
    (void)sw_plan_fault(a->plan, strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "override_unused",
                        a->entry->match, strlen(a->entry->match), "check the pattern, or remove the entry",
                        "%s: the pattern matches no module", a->entry->source);
    return SW_OK;
}

/* An entry that only states storage was used while parameters were placed; did it meet any? */
static sw_status check_layout_entry(applying *a, bool strict)
{
    const sw_override_entry *e = a->entry;
    bool is_error = strict || !e->is_glob;

    if (sw_override_layout_is_met(a->plan, e))
        return SW_OK;
    SW_TRY(sw_override_steps_status(a->plan, a->err));
    (void)sw_plan_fault(a->plan, is_error ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING,
                        e->is_glob ? "override_unused" : "override_unmatched", e->match, strlen(e->match),
                        "name a parameter, or its module and `layout: {PATH: stacked}`",
                        "%s: layout meets no parameter", e->source);
    return SW_OK;
}

static bool only_states_layout(const sw_override_entry *e)
{
    return e->n_layouts > 0 && !declares_contract(e) && !has_word(e) && !e->has_tp_divide &&
           e->region_dispatch < 0 && e->inner_target == NULL && e->inner_wrapper == NULL &&
           e->local_compute == NULL && !e->has_inner_out_src;
}

static sw_status apply_entry(applying *a)
{
    if (a->entry->n_layouts > 0)
        SW_TRY(check_layout_entry(a, a->plan->strict));
    if (only_states_layout(a->entry))
        return SW_OK;
    return a->entry->is_glob ? apply_glob(a, a->plan->strict) : apply_exact(a);
}

sw_status sw_overrides_apply(sw_plan *plan, const sw_overrides *overrides, sw_error *err)
{
    application shared = {.names = {.model = plan->model}};
    sw_status status = sw_override_steps_status(plan, err);

    for (uint32_t i = 0; status == SW_OK && i < overrides->n_entries; i++) {
        applying a = {.plan = plan, .shared = &shared, .entry = &overrides->entries[i], .err = err};
        a.pattern = sw_glob_of(a.entry->match);
        if (sw_override_holds(a.entry, plan))
            status = apply_entry(&a);
    }
    sw_override_names_clear(&shared.names);
    plan->layout_rules = NULL; /* they borrow the overrides */
    plan->n_layout_rules = 0;
    return status;
}
