/*
 * What follows from contracts and placements (phase 6) is in a plan file so that a consumer need not know the
 * rules. Here it is made again on a copy and compared: a file that was edited by hand, or written by a
 * program with other rules, would train wrongly without a sound.
 */
#include "plan/check.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/intern.h"
#include "plan/lowering.h"
#include "plan/override_match.h"
#include "plan/plan_write.h"
#include "plan/role.h"

static const char again[] =
    "make the plan again with `shardwright plan`: this part of it is not to be edited";

typedef struct comparing {
    const sw_plan *given;
    sw_plan *work;
} comparing;

static void stale(const comparing *c, const sw_spec *spec, const char *code, const char *what)
{
    (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, code, spec->fqn, spec->fqn_length, again, "%s", what);
}

/* ---- texts ---- */

static void put(char *text, size_t capacity, const char *more)
{
    size_t used = strlen(text);

    (void)snprintf(text + used, capacity - used, "%s", more);
}

void sw_check_sums_text(const sw_grad_list *list, char *text, size_t capacity)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < list->n; i++) {
        const sw_grad_sum *s = &list->sums[i];
        char one[96];
        char group[32] = "";
        if (s->group != 0)
            (void)snprintf(group, sizeof group, ", groups of %u", s->group);
        (void)snprintf(one, sizeof one, "%s%s (%s%s)", i == 0 ? "" : ", ", sw_axis_name(s->axis), s->reason,
                       group);
        put(text, capacity, one);
    }
    if (list->n == 0)
        put(text, capacity, "nothing");
}

static void row_text(const sw_lowered *row, char *text, size_t capacity)
{
    char dim[32] = "";
    char from[32] = "";

    if (row == NULL) {
        (void)snprintf(text, capacity, "nothing");
        return;
    }
    if (sw_plan_row_has_dim(row->collective))
        (void)snprintf(dim, sizeof dim, " of dim %d", row->dim);
    if (row->collective == SW_COLL_ALL_TO_ALL)
        (void)snprintf(from, sizeof from, " from dim %d", row->other_dim);
    (void)snprintf(text, capacity, "%.100s: %s%s%s over %s, backward %s", row->arg,
                   sw_collective_name(row->collective), dim, from, sw_axis_name(row->axis),
                   sw_collective_name(row->backward));
}

/* ---- making it again ---- */

static const char *handler_of(const sw_spec *spec, const sw_spec_param *p, sw_role role)
{
    char fqn[4096];

    if (role != SW_ROLE_SPECIAL)
        return NULL;
    (void)snprintf(fqn, sizeof fqn, "%s.%.*s", spec->fqn, (int)p->path_length, p->path);
    return sw_role_handler(role, fqn);
}

static sw_status forget(sw_plan *work, sw_spec *spec, sw_error *err)
{
    for (uint32_t k = 0; k < spec->n_params; k++) {
        const sw_facts *said = &work->facts[spec->params[k].facts];
        const char *handler = handler_of(spec, &spec->params[k], said->role);
        if (!said->is_deferred && said->handler == handler)
            continue;
        sw_facts facts = *said;
        facts.is_deferred = false;
        facts.handler = handler;
        spec->params[k].facts = sw_plan_intern_facts(work, &facts);
        if (spec->params[k].facts == UINT32_MAX)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to check a plan");
    }
    spec->deferred = NULL;
    spec->n_deferred = 0;
    spec->inner = NULL;
    spec->n_inner = 0;
    spec->tp_local = NULL;
    spec->n_tp_local = 0;
    return SW_OK;
}

/* The contract of a span holds between two children, which the model must have. */
static sw_status check_span(sw_plan *work, sw_override_names *names, const sw_spec *spec, sw_error *err)
{
    const char *const children[] = {spec->span_entry, spec->span_exit};

    for (size_t i = 0; i < SW_COUNT(children); i++) {
        char fqn[4096];
        uint32_t module = SW_NO_MODULE;
        if (children[i] == NULL)
            continue;
        int n = snprintf(fqn, sizeof fqn, "%s%s%s", spec->fqn, spec->fqn_length == 0 ? "" : ".", children[i]);
        if (n > 0 && (size_t)n < sizeof fqn)
            SW_TRY(sw_override_find_module(names, fqn, (size_t)n, &module, err));
        if (module == SW_NO_MODULE) {
            (void)sw_plan_fault(work, SW_SEVERITY_ERROR, "not_in_model", spec->fqn, spec->fqn_length,
                                "make the plan again for this model",
                                "its contract spans to '%.100s', and the model has no such module there",
                                children[i]);
        }
    }
    return SW_OK;
}

/* Does it stand inside a block of experts? A file does not say so. */
static bool is_in_block(const sw_plan *plan, const sw_spec *spec)
{
    enum { MOST_LEVELS = 4 }; /* a file may name a boundary with thousands of dots */
    uint32_t n_levels = 0;

    for (uint32_t n = spec->fqn_length; n-- > 0 && n_levels < MOST_LEVELS;) {
        if (spec->fqn[n] != '.')
            continue;
        const sw_spec *above = sw_plan_find_spec(plan, spec->fqn, n);
        if (above != NULL && above->type == SW_BOUNDARY_MOE_MLP)
            return true;
        n_levels++;
    }
    return false;
}

/* Where boundaries stand in the model; one that is no module of it keeps the layer that is said. */
static sw_status find_modules(sw_plan *work, const sw_model *model, sw_error *err)
{
    sw_override_names names SW_AUTO(sw_override_names_clear) = {.model = model};

    for (uint32_t i = 0; i < work->n_specs; i++) {
        sw_spec *s = &work->specs[i];
        SW_TRY(sw_override_find_module(&names, s->fqn, s->fqn_length, &s->module, err));
        SW_TRY(check_span(work, &names, s, err));
        s->in_moe = is_in_block(work, s);
        if (s->module != SW_NO_MODULE && model->n_params > 0)
            s->layer = model->params[model->modules[s->module].first_param].layer;
        else if (s->is_tied_alias)
            s->layer = -1;
    }
    return SW_OK;
}

static sw_status finish_again(sw_plan *work, const sw_model *model, sw_error *err)
{
    for (uint32_t i = 0; i < work->n_specs; i++)
        SW_TRY(forget(work, &work->specs[i], err));
    SW_TRY(find_modules(work, model, err));
    work->parallel = NULL;
    work->n_parallel = 0;
    work->special = NULL;
    work->n_special = 0;
    work->model = model; /* its config has the counts of heads */
    sw_status status = sw_finish(work, err);
    work->model = NULL; /* a plan from a file knows its parameters by name only */
    return status;
}

/* ---- comparing ---- */

bool sw_check_same_sums(const sw_grad_list *a, const sw_grad_list *b)
{
    bool same = a->n == b->n;

    for (uint32_t i = 0; same && i < a->n; i++) {
        same = a->sums[i].axis == b->sums[i].axis && a->sums[i].group == b->sums[i].group &&
               strcmp(a->sums[i].reason, b->sums[i].reason) == 0;
    }
    return same;
}

static void compare_sums(const comparing *c, const sw_spec *given, const sw_spec *work)
{
    for (uint32_t k = 0; k < given->n_params; k++) {
        const sw_grad_list *found = &c->given->facts[given->params[k].facts].grad;
        const sw_grad_list *due = &c->work->facts[work->params[k].facts].grad;
        char found_text[256];
        char due_text[256];
        char fqn[4096];
        if (sw_check_same_sums(found, due))
            continue;
        sw_check_sums_text(found, found_text, sizeof found_text);
        sw_check_sums_text(due, due_text, sizeof due_text);
        size_t length = sw_check_fqn(given, &given->params[k], fqn, sizeof fqn);
        (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "stale_grad_sum", fqn, length, again,
                            "its gradient is summed over %s; its placement and contract call for %s",
                            found_text, due_text);
    }
}

/* Only a bias that experts weight before the exit is added on one rank: there is no other place for it. */
static void check_adder(const comparing *c, const sw_spec *spec, const sw_spec_param *p)
{
    const sw_facts *f = &c->given->facts[p->facts];
    bool is_expert = f->role == SW_ROLE_MOE_EXPERT || f->role == SW_ROLE_SHARED_EXPERT;
    bool is_bias = f->in_dim < 0 && f->places.on[SW_ON_TP].kind == SW_PLACE_REPLICATE;
    char fqn[4096];

    if (!f->is_rank0_only || (is_expert && is_bias && c->given->tp > 1))
        return;
    size_t length = sw_check_fqn(spec, p, fqn, sizeof fqn);
    (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "bias_placement", fqn, length, again,
                        "added on rank 0 of tp alone, and it is no whole bias of an expert");
}

/* A row bias that is not deferred is added by every rank of tp; one deferred without need is added twice. */
static void compare_biases(const comparing *c, const sw_spec *given, const sw_spec *work)
{
    for (uint32_t k = 0; k < given->n_params; k++) {
        bool is = c->given->facts[given->params[k].facts].is_deferred;
        bool must = c->work->facts[work->params[k].facts].is_deferred;
        char fqn[4096];
        check_adder(c, given, &given->params[k]);
        if (is == must)
            continue;
        size_t length = sw_check_fqn(given, &given->params[k], fqn, sizeof fqn);
        (void)sw_plan_fault(
            c->work, SW_SEVERITY_ERROR, "bias_placement", fqn, length,
            must ? "list it in deferred_bias, or make the plan again" : again,
            must ? "the bias of a row-parallel weight is whole beside a partial exit and not deferred: "
                   "it would be added tp times"
                 : "the bias is deferred, but nothing after the exit is a partial sum over tp");
    }
}

static bool is_same_row(const sw_lowered *a, const sw_lowered *b)
{
    char a_text[256];
    char b_text[256];

    row_text(a, a_text, sizeof a_text);
    row_text(b, b_text, sizeof b_text);
    return strcmp(a_text, b_text) == 0 && a->position == b->position;
}

static void compare_rows(const comparing *c, const sw_spec *spec, const char *side, const sw_lowered *found,
                         uint32_t n_found, const sw_lowered *due, uint32_t n_due)
{
    for (uint32_t i = 0; i < n_found || i < n_due; i++) {
        const sw_lowered *a = i < n_found ? &found[i] : NULL;
        const sw_lowered *b = i < n_due ? &due[i] : NULL;
        char a_text[256];
        char b_text[256];
        char what[600];
        if (a != NULL && b != NULL && is_same_row(a, b))
            continue;
        row_text(a, a_text, sizeof a_text);
        row_text(b, b_text, sizeof b_text);
        (void)snprintf(what, sizeof what, "lowering %s has %s; the contract calls for %s", side, a_text,
                       b_text);
        stale(c, spec, "stale_lowering", what);
        return; /* what follows is shifted */
    }
}

static bool is_same_inner(const sw_inner *a, const sw_inner *b)
{
    bool same = strcmp(a->op, b->op) == 0 && a->axis == b->axis && a->n_params == b->n_params &&
                (a->replicas > 1 ? a->replicas : 1) == (b->replicas > 1 ? b->replicas : 1);

    for (uint32_t i = 0; same && i < a->n_params; i++)
        same = strcmp(a->params[i], b->params[i]) == 0;
    return same;
}

static void compare_inner(const comparing *c, const sw_spec *given, const sw_spec *work)
{
    bool same = given->n_inner == work->n_inner;

    for (uint32_t i = 0; same && i < given->n_inner; i++)
        same = is_same_inner(&given->inner[i], &work->inner[i]);
    if (!same)
        stale(c, given, "stale_inner",
              "the reductions inside the region are not those that its placements call for");
}

static void compare_heads(const comparing *c, const sw_spec *given, const sw_spec *work)
{
    uint32_t n = given->n_tp_local < work->n_tp_local ? given->n_tp_local : work->n_tp_local;
    char what[256];

    for (uint32_t i = 0; i < n; i++) {
        const sw_tp_local *a = &given->tp_local[i];
        const sw_tp_local *b = &work->tp_local[i];
        if (strcmp(a->name, b->name) == 0 && a->global == b->global && a->local == b->local)
            continue;
        (void)snprintf(what, sizeof what,
                       "tp_local has %.64s %lld of %lld; the placements call for %.64s %lld of %lld", a->name,
                       (long long)a->local, (long long)a->global, b->name, (long long)b->local,
                       (long long)b->global);
        stale(c, given, "stale_tp_local", what);
        return;
    }
    if (given->n_tp_local != work->n_tp_local) {
        (void)snprintf(what, sizeof what, "tp_local has %u attributes; the placements call for %u",
                       given->n_tp_local, work->n_tp_local);
        stale(c, given, "stale_tp_local", what);
    }
}

static const char *layer_text(int32_t layer, char *text, size_t capacity)
{
    (void)snprintf(text, capacity, layer < 0 ? "no layer" : "layer %d", layer);
    return text;
}

static void compare_place(const comparing *c, const sw_spec *given, const sw_spec *work)
{
    char what[128];
    char found[32];
    char due[32];

    if (given->layer != work->layer) {
        (void)snprintf(what, sizeof what, "in %s; its module stands in %s",
                       layer_text(given->layer, found, sizeof found),
                       layer_text(work->layer, due, sizeof due));
        stale(c, given, "stale_stage", what);
    }
    if (given->pp_stage != work->pp_stage) {
        (void)snprintf(what, sizeof what, "on stage %u; its layer belongs to stage %u", given->pp_stage,
                       work->pp_stage);
        stale(c, given, "stale_stage", what);
    }
    if (given->is_terminal != work->is_terminal)
        stale(c, given, "stale_stage",
              given->is_terminal ? "marked terminal, and it is not the last boundary"
                                 : "the last boundary, and not marked terminal");
}

static bool is_same_stage(const sw_stage *a, const sw_stage *b)
{
    return a->first_layer == b->first_layer && a->end_layer == b->end_layer && a->has_embed == b->has_embed &&
           a->has_head == b->has_head;
}

static bool is_same_parallel(const sw_parallel_module *a, const sw_parallel_module *b)
{
    return strcmp(a->fqn, b->fqn) == 0 && strcmp(a->kind, b->kind) == 0 && a->axis == b->axis &&
           a->size == b->size;
}

static void compare_plan(const comparing *c)
{
    const sw_plan *g = c->given;
    const sw_plan *w = c->work;
    bool same_stages = g->n_stages == w->n_stages;
    bool same_parallel = g->n_parallel == w->n_parallel;
    bool same_special = g->n_special == w->n_special;

    for (uint32_t i = 0; same_stages && i < g->n_stages; i++)
        same_stages = is_same_stage(&g->stages[i], &w->stages[i]);
    for (uint32_t i = 0; same_parallel && i < g->n_parallel; i++)
        same_parallel = is_same_parallel(&g->parallel[i], &w->parallel[i]);
    for (uint32_t i = 0; same_special && i < g->n_special; i++) {
        same_special = strcmp(g->special[i].fqn, w->special[i].fqn) == 0 &&
                       strcmp(g->special[i].handler, w->special[i].handler) == 0 &&
                       strcmp(g->special[i].reason, w->special[i].reason) == 0;
    }
    if (!same_stages)
        (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "stale_stage", "", 0, again,
                            "stages does not spread %u layers over pp=%u", w->n_layers, w->n_stages);
    if (!same_parallel)
        (void)sw_plan_fault(c->work, SW_SEVERITY_ERROR, "stale_parallel", "", 0, again,
                            "parallel_modules lists %u modules, and not the %u that the boundaries call for",
                            g->n_parallel, w->n_parallel);
    if (!same_special) {
        (void)sw_plan_fault(
            c->work, SW_SEVERITY_ERROR, "stale_special", "", 0, again,
            "special lists %u parameters, and not the %u of a special role with their handler", g->n_special,
            w->n_special);
    }
}

sw_status sw_check_finish(const sw_plan *given, sw_plan *work, const sw_model *model, sw_error *err)
{
    comparing c = {given, work};

    SW_TRY(finish_again(work, model, err));
    for (uint32_t i = 0; i < given->n_specs;
         i++) { /* the copy has the same boundaries and parameters, in order */
        const sw_spec *g = &given->specs[i];
        const sw_spec *w = &work->specs[i];
        compare_biases(&c, g, w);
        compare_sums(&c, g, w);
        compare_rows(&c, g, "in", g->lower_in, g->n_lower_in, w->lower_in, w->n_lower_in);
        compare_rows(&c, g, "out", g->lower_out, g->n_lower_out, w->lower_out, w->n_lower_out);
        compare_inner(&c, g, w);
        compare_heads(&c, g, w);
        compare_place(&c, g, w);
    }
    compare_plan(&c);
    return SW_OK;
}
