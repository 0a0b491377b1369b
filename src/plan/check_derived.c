/*
 * Where a given plan differs from the one that would be derived today for its model, mesh and switches. That
 * is no fault: a plan may be written by hand, or by a release with other rules. The overrides are not in the
 * file: what they may change of a boundary that lists some is passed over, and a note says so.
 */
#include "plan/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "plan/cut_conflict.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/layout.h"
#include "plan/report.h"

enum { MOST_LISTED = 50 };

typedef struct comparing {
    const sw_plan *given;
    const sw_plan *derived;
    sw_plan *work;
    uint32_t n_unlisted;
    uint32_t n_overridden;
    uint32_t first_fault; /* faults of the working copy before the first difference */
} comparing;

/* "tp=S(0) ep=R", or "nothing". */
static void places_text(const sw_places *places, char *text, size_t capacity)
{
    static const int order[] = {SW_ON_TP, SW_ON_CP, SW_ON_EP};
    static const char *const names[SW_ON_COUNT_] = {[SW_ON_CP] = "cp", [SW_ON_EP] = "ep", [SW_ON_TP] = "tp"};
    size_t used = 0;

    (void)snprintf(text, capacity, "nothing");
    for (size_t i = 0; i < SW_COUNT(order) && used + 1 < capacity; i++) {
        char one[128];
        if ((places->present & (1U << order[i])) == 0)
            continue;
        (void)sw_placement_text(&places->on[order[i]], one, sizeof one);
        (void)snprintf(text + used, capacity - used, "%s%s=%s", used == 0 ? "" : " ", names[order[i]], one);
        used = strlen(text);
    }
}

static const char meant[] = "nothing, if it is meant; else make the plan again";

static void differs(comparing *c, const char *fqn, size_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void differs(comparing *c, const char *fqn, size_t length, const char *format, ...)
{
    char what[700];
    va_list args;

    if (c->work->n_faults - c->first_fault >= MOST_LISTED) {
        c->n_unlisted++;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)sw_plan_fault(c->work, SW_SEVERITY_WARNING, "differs_from_derived", fqn, length, meant, "%s", what);
}

/* ---- parameters ---- */

static bool is_same_places(const sw_places *a, const sw_places *b)
{
    bool same = a->present == b->present;

    for (int axis = 0; same && axis < SW_ON_COUNT_; axis++)
        same = (a->present & (1U << axis)) == 0 || sw_placement_equal(&a->on[axis], &b->on[axis]);
    return same;
}

static bool is_same_shape(const sw_shape *a, const sw_shape *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->n_dims == b->n_dims && memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0;
}

/* The first thing that differs besides role, placement and gradient, or NULL. Only what a plan file says
 * counts. */
static const char *other_difference(const sw_facts *a, const sw_facts *b)
{
    const uint32_t in_groups = SW_ROW_QUANTISED | SW_ROW_IN_GROUPS;

    if (!is_same_shape(a->view, b->view))
        return "view";
    if (a->layout != b->layout ||
        (a->layout != SW_LAYOUT_PLAIN && (a->parts > 1 ? a->parts : 1) != (b->parts > 1 ? b->parts : 1)))
        return "layout";
    if (a->out_dim != b->out_dim || a->in_dim != b->in_dim)
        return "dims";
    if (a->is_trained != b->is_trained || (a->reason == NULL) != (b->reason == NULL) ||
        (a->reason != NULL && strcmp(a->reason, b->reason) != 0))
        return "trained";
    if (((a->flags ^ b->flags) & SW_ROW_FULL_NORM) != 0)
        return "full_norm";
    if (((a->flags ^ b->flags) & SW_ROW_CENTRED) != 0)
        return "centred";
    if (((a->flags & in_groups) == 0) != ((b->flags & in_groups) == 0))
        return "in_groups";
    return a->is_rank0_only != b->is_rank0_only ? "added_on" : NULL;
}

/* A cut that contradicts storage or use is as wrong in a file as it is in an override. */
static bool is_conflict(comparing *c, const char *fqn, size_t length, const sw_facts *given,
                        const sw_facts *derived)
{
    static const int axes[] = {SW_ON_TP, SW_ON_EP};
    char a_text[256];
    char b_text[256];

    for (size_t i = 0; i < SW_COUNT(axes) && given->layout == derived->layout; i++) {
        if (!sw_cut_conflicts(c->given, derived, &given->places, axes[i]))
            continue;
        places_text(&given->places, a_text, sizeof a_text);
        places_text(&derived->places, b_text, sizeof b_text);
        (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "cut_conflict", fqn, length,
                            "leave the cut as it is derived, or replicate it",
                            "placement %s, but as it is stored and used it is cut %s", a_text, b_text);
        return true;
    }
    return false;
}

static void compare_param(comparing *c, const sw_spec *spec, const sw_spec_param *given,
                          const sw_spec_param *derived)
{
    const sw_facts *a = &c->given->facts[given->facts];
    const sw_facts *b = &c->derived->facts[derived->facts];
    const char *other = other_difference(a, b);
    char fqn[4096];
    size_t length = 0;
    char a_text[256];
    char b_text[256];
    bool is_touched = spec->n_overrides > 0; /* its contract may be another, and so may the sums */
    bool same_places = (is_touched && a->is_placed) || is_same_places(&a->places, &b->places);
    bool same_sums = is_touched || sw_check_same_sums(&a->grad, &b->grad);

    if (a->role == b->role && same_places && same_sums && other == NULL)
        return;
    length = sw_check_fqn(spec, given, fqn, sizeof fqn);
    if (a->role != b->role) {
        differs(c, fqn, length, "role %s; %s is derived", sw_role_name(a->role), sw_role_name(b->role));
    } else if (!same_places) {
        if (is_conflict(c, fqn, length, a, b))
            return;
        places_text(&a->places, a_text, sizeof a_text);
        places_text(&b->places, b_text, sizeof b_text);
        differs(c, fqn, length, "placement %s; %s is derived", a_text, b_text);
    } else if (!same_sums) {
        sw_check_sums_text(&a->grad, a_text, sizeof a_text);
        sw_check_sums_text(&b->grad, b_text, sizeof b_text);
        differs(c, fqn, length, "gradient summed over %s; over %s is derived", a_text, b_text);
    } else {
        differs(c, fqn, length, "another %s is derived", other);
    }
}

static bool is_same_path(const sw_spec_param *a, const sw_spec_param *b)
{
    return a->path_length == b->path_length && memcmp(a->path, b->path, a->path_length) == 0;
}

/* Where each path of the spec is; false without memory. */
static bool index_paths(const sw_spec *spec, sw_map *by_path)
{
    const sw_spec_param *params = spec->params;

    for (uint32_t k = 0; params != NULL && k < spec->n_params; k++) {
        bool is_new = false;
        if (sw_map_put(by_path, params[k].path, params[k].path_length, k, &is_new) == NULL)
            return false;
    }
    return true;
}

/* By place first: only a plan that was edited needs the map. */
static sw_status compare_params(comparing *c, const sw_spec *given, const sw_spec *derived, sw_error *err)
{
    sw_map by_path SW_AUTO(sw_map_clear) = {0};

    for (uint32_t k = 0; k < given->n_params; k++) {
        const sw_spec_param *p = &given->params[k];
        const sw_spec_param *q = k < derived->n_params ? &derived->params[k] : NULL;
        if (q == NULL || !is_same_path(p, q)) {
            if (by_path.n_used == 0 && !index_paths(derived, &by_path))
                return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to compare plans");
            const uint32_t *at = sw_map_find(&by_path, p->path, p->path_length);
            q = at == NULL ? NULL : &derived->params[*at];
        }
        if (q != NULL)
            compare_param(c, given, p, q);
        else
            differs(c, given->fqn, given->fqn_length,
                    "holds '%.*s', which is derived elsewhere or not at all", (int)p->path_length, p->path);
    }
    return SW_OK;
}

/* ---- boundaries ---- */

static bool is_same_io(const sw_io *a, const sw_io *b)
{
    bool same = a->is_declared == b->is_declared && a->n == b->n;

    for (uint32_t i = 0; same && i < a->n; i++)
        same = strcmp(a->entries[i].name, b->entries[i].name) == 0 &&
               is_same_places(&a->entries[i].places, &b->entries[i].places);
    return same;
}

static bool is_same_word(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* What overrides may change. A derived boundary has neither injections nor names of outputs. */
static const char *contract_difference(const sw_spec *a, const sw_spec *b)
{
    if (!is_same_io(&a->in_src, &b->in_src))
        return "in_src";
    if (!is_same_io(&a->in_dst, &b->in_dst))
        return "in_dst";
    if (!is_same_io(&a->out_src, &b->out_src))
        return "out_src";
    if (!is_same_io(&a->out_dst, &b->out_dst))
        return "out_dst";
    if (a->region_dispatch != b->region_dispatch)
        return "region_dispatch";
    if (!is_same_word(a->inner_target, b->inner_target))
        return "inner_target";
    if (!is_same_word(a->inner_wrapper, b->inner_wrapper))
        return "inner_wrapper";
    if (a->inner_first_input != b->inner_first_input || !is_same_io(&a->inner_out_src, &b->inner_out_src))
        return "inner_out_src";
    if (!is_same_word(a->local_compute, b->local_compute))
        return "local_compute";
    if (a->n_tp_divide != b->n_tp_divide)
        return "tp_divide_attrs";
    return a->n_out_names != b->n_out_names ? "out_names" : NULL;
}

/* What no override changes. */
static const char *place_difference(const sw_spec *a, const sw_spec *b)
{
    if (a->is_inserted != b->is_inserted)
        return "inserted";
    if (a->is_tower != b->is_tower)
        return "tower";
    if (a->is_tied_alias != b->is_tied_alias)
        return "tied_alias";
    if (a->needs_cp_attn != b->needs_cp_attn)
        return "needs_cp_attn";
    if (!is_same_word(a->span_entry, b->span_entry))
        return "span_entry";
    if (!is_same_word(a->span_exit, b->span_exit))
        return "span_exit";
    return a->ep_size != b->ep_size ? "ep_size" : NULL;
}

static sw_status compare_spec(comparing *c, const sw_spec *given, sw_error *err)
{
    const sw_spec *derived = sw_plan_find_spec(c->derived, given->fqn, given->fqn_length);

    if (derived == NULL) {
        if (!given->is_inserted) /* nothing is derived where an override inserts */
            differs(c, given->fqn, given->fqn_length, "no boundary is derived here");
        return SW_OK;
    }
    const char *other = place_difference(given, derived);
    if (other == NULL && given->n_overrides == 0)
        other = contract_difference(given, derived);
    if (given->type != derived->type)
        differs(c, given->fqn, given->fqn_length, "type %s; %s is derived",
                sw_boundary_type_name(given->type), sw_boundary_type_name(derived->type));
    else if (other != NULL)
        differs(c, given->fqn, given->fqn_length, "another %s is derived", other);
    return compare_params(c, given, derived, err);
}

/* The tie follows from the model alone: no override makes or undoes it. */
static void compare_tied(const comparing *c)
{
    const sw_plan *a = c->given;
    const sw_plan *b = c->derived;
    bool same = a->n_tied == b->n_tied;

    for (uint32_t i = 0; same && i < a->n_tied; i++)
        same = is_same_word(a->tied[i].first, b->tied[i].first) &&
               is_same_word(a->tied[i].second, b->tied[i].second);
    if (!same)
        (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "tied_conflict", "", 0,
                            "make the plan again with `shardwright plan`",
                            "tied lists %u pairs, and not the %u that the model ties", a->n_tied, b->n_tied);
}

/* The next finding of a severity from `*at` on, or NULL. What overrides gave rise to cannot be made again. */
static const sw_finding *next_finding(const sw_report *report, sw_severity severity, size_t *at)
{
    while (*at < sw_report_count(report)) {
        const sw_finding *f = sw_report_finding(report, (*at)++);
        if (f->severity == severity && strncmp(f->code, "override_", strlen("override_")) != 0)
            return f;
    }
    return NULL;
}

/* The first one of a severity that differs: what follows is shifted. Their words may change. */
static void compare_findings(comparing *c, sw_severity severity)
{
    size_t at_given = 0;
    size_t at_derived = 0;
    const sw_finding *a = NULL;
    const sw_finding *b = NULL;

    do {
        a = next_finding(c->given->report, severity, &at_given);
        b = next_finding(c->derived->report, severity, &at_derived);
    } while (a != NULL && b != NULL && strcmp(a->code, b->code) == 0 && strcmp(a->fqn, b->fqn) == 0);
    if (a != NULL || b != NULL)
        differs(c, "", 0, "%ss list %.100s%s%.200s; %.100s%s%.200s is derived", sw_severity_name(severity),
                a == NULL ? "nothing more" : a->code, a == NULL ? "" : " of ", a == NULL ? "" : a->fqn,
                b == NULL ? "nothing" : b->code, b == NULL ? "" : " of ", b == NULL ? "" : b->fqn);
}

static bool is_listed(const sw_report *report, const sw_finding *f)
{
    for (size_t i = 0; i < sw_report_count(report); i++) {
        const sw_finding *other = sw_report_finding(report, i);
        if (strcmp(other->code, f->code) == 0 && strcmp(other->fqn, f->fqn) == 0)
            return true;
    }
    return false;
}

/* Have the lints of the plan itself said it? */
static bool is_said(const sw_plan *work, const sw_finding *f)
{
    for (uint32_t i = 0; i < work->n_faults; i++) {
        const sw_fault *other = &work->faults[i];
        if (strcmp(other->code, f->code) == 0 &&
            (strcmp(other->fqn, f->fqn) == 0 || strcmp(other->pattern, f->fqn) == 0))
            return true;
    }
    return false;
}

/*
 * Some warnings are of the way to a plan, and not of what it says: of the files against the config, of
 * vocabularies that do not come out even. They hold for the plan as they hold for the derived one; of a plan
 * with overrides, which may have mended them, those that it lists itself.
 */
static void repeat_warnings(const comparing *c, const sw_report *found)
{
    const sw_finding *f = NULL;
    size_t at = 0;

    while ((f = next_finding(found, SW_SEVERITY_WARNING, &at)) != NULL) {
        if (!is_said(c->work, f) && (c->n_overridden == 0 || is_listed(c->given->report, f)))
            sw_report_add(c->work->report, f->severity, f->code, f->fqn, f->help, "%s", f->what);
    }
}

static uint32_t count_overridden(const sw_plan *plan)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_specs; i++)
        n += plan->specs[i].n_overrides > 0;
    return n;
}

static sw_status compare(comparing *c, sw_error *err)
{
    for (uint32_t i = 0; i < c->given->n_specs; i++)
        SW_TRY(compare_spec(c, &c->given->specs[i], err));
    for (uint32_t i = 0; i < c->derived->n_specs; i++) {
        const sw_spec *d = &c->derived->specs[i];
        if (sw_plan_find_spec(c->given, d->fqn, d->fqn_length) == NULL)
            differs(c, d->fqn, d->fqn_length, "a boundary is derived here, and the plan has none");
    }
    compare_tied(c);
    if (c->n_overridden == 0) {
        compare_findings(c, SW_SEVERITY_WARNING);
        compare_findings(c, SW_SEVERITY_NOTE);
    }
    if (c->n_overridden > 0) {
        (void)sw_plan_fault(
            c->work, SW_SEVERITY_NOTE, "not_compared", "", 0, "",
            "overrides touched %u of %u boundaries: what they may change there is not compared "
            "with a derived plan",
            c->n_overridden, c->given->n_specs);
    }
    if (c->n_unlisted > 0)
        (void)sw_plan_fault(c->work, SW_SEVERITY_WARNING, "differs_from_derived", "", 0, meant,
                            "and %u more differences from the derived plan", c->n_unlisted);
    return SW_OK;
}

/* Without its overrides a model may have no plan at all. */
static void not_derivable(const comparing *c, const sw_error *why)
{
    (void)sw_plan_fault(
        c->work, c->n_overridden > 0 ? SW_SEVERITY_NOTE : SW_SEVERITY_WARNING, "not_derivable", "", 0,
        why->help,
        "the plan cannot be compared with a derived one: without overrides the model has no plan on this "
        "mesh: %s",
        why->what);
}

static sw_status derive(comparing *c, const sw_model *model, sw_report *found, sw_error *err)
{
    sw_plan_options options = SW_PLAN_OPTIONS_INIT;
    sw_plan *derived = NULL;
    sw_error why = {0};

    options.no_sequence_parallel = !c->given->sequence_parallel;
    options.loss_parallel = c->given->loss_parallel;
    options.allow_uncovered = c->given->allow_uncovered;
    options.report = found;
    sw_status status = sw_plan_create(&derived, model, c->given->mesh, &options, &why);
    if (status != SW_OK && status != SW_E_PLAN) {
        if (err != NULL)
            *err = why;
        return status;
    }
    repeat_warnings(c, found);
    if (status == SW_E_PLAN) {
        not_derivable(c, &why);
        return SW_OK;
    }
    c->derived = derived;
    status = compare(c, err);
    sw_plan_destroy(derived);
    return status;
}

sw_status sw_check_derived(const sw_plan *given, sw_plan *work, const sw_model *model, sw_error *err)
{
    comparing c = {
        .given = given, .work = work, .n_overridden = count_overridden(given), .first_fault = work->n_faults};
    sw_report *found = NULL;

    SW_TRY(sw_report_create(&found, err));
    sw_status status = derive(&c, model, found, err);
    sw_report_destroy(found);
    return status;
}
