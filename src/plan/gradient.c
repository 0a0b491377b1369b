/*
 * The gradient-reduction plan: for each parameter the axes over which its gradient is a partial sum, each
 * with the reason. One logical loss: a rank's loss counts its own tokens over the step's total, so every sum
 * is a sum and nothing averages. The rules below are the whole file.
 */
// clang-format off
/*
 *   tp  kv_replica  a piece is held by several neighbouring ranks: summed inside each group
 *   tp  sequence    whole over tp, but its tokens are cut over tp (norms, deferred biases, routers of sliced
 *                   blocks)
 *   tp  partial     whole over tp, but used inside a region whose exit is a partial sum over tp
 *   ep  partial     the router under an explicit ep axis: each rank routes to its own experts only
 *   cp  context     its tokens are cut over cp
 *   dp  data        always; for experts under TP-extend-EP edp stands for dp, cp and what is left of tp
 *   pp  tied        a tied pair whose two uses are in different stages
 */
// clang-format on
#include "plan/finish.h"

#include <string.h>

#include "base/status.h"
#include "plan/fault.h"
#include "plan/intern.h"

/* What the sums of a boundary's parameters depend on besides their facts. */
typedef struct region {
    bool exits_partial; /* over tp */
    bool tokens_on_tp;  /* its computation sees a slice of the sequence */
    bool exit_on_tp;    /* what is handed on is cut along the sequence */
    bool tokens_on_cp;
    bool is_moe;
    bool extends;       /* TP-extend-EP block */
    bool is_tied_apart; /* a tied pair in two stages */
} region;

/* Is some input or output cut along its tokens: the batch or the sequence, whichever stands first? */
static bool cuts_tokens(const sw_io *io, int axis)
{
    for (uint32_t i = 0; i < io->n; i++) {
        const sw_placement *p = &io->entries[i].places.on[axis];
        if (p->kind == SW_PLACE_SHARD && (p->dim == 0 || p->dim == 1))
            return true;
    }
    return false;
}

/* The two of a tied pair that stand in different stages: each has a part of the gradient. */
static void mark_tied_apart(const sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_specs; i++)
        plan->specs[i].is_tied_apart = false;
    for (uint32_t i = 0; i < plan->n_tied; i++) {
        sw_spec *first = sw_plan_find_user(plan, plan->tied[i].first);
        sw_spec *second = sw_plan_find_user(plan, plan->tied[i].second);
        if (first == NULL || second == NULL || first->pp_stage == second->pp_stage)
            continue;
        first->is_tied_apart = true;
        second->is_tied_apart = true;
    }
}

static region look(const sw_plan *plan, const sw_spec *spec)
{
    bool whole = spec->type == SW_BOUNDARY_WHOLE;
    region r = {.exits_partial = sw_spec_partial_outputs(spec) > 0 && spec->type != SW_BOUNDARY_EMBED,
                .tokens_on_tp = cuts_tokens(&spec->in_dst, SW_ON_TP),
                .exit_on_tp = cuts_tokens(&spec->out_dst, SW_ON_TP),
                .tokens_on_cp = cuts_tokens(&spec->in_dst, SW_ON_CP),
                .is_moe = spec->type == SW_BOUNDARY_MOE_MLP,
                .extends = spec->type == SW_BOUNDARY_MOE_MLP && plan->ep_mode == SW_EP_TP_EXTEND};

    if (whole && !spec->is_tower) { /* no contract says more: it works on the tokens that are there */
        r.tokens_on_tp = plan->sequence_parallel && plan->tp > 1;
        r.tokens_on_cp = plan->cp > 1;
    }
    r.is_tied_apart =
        (spec->type == SW_BOUNDARY_EMBED || spec->type == SW_BOUNDARY_LM_HEAD) && spec->is_tied_apart;
    return r;
}

static uint32_t replicas_of(const sw_placement *p)
{
    uint32_t most = 1;

    for (uint32_t i = 0; p->cut != NULL && i < p->cut->n_segments; i++)
        most = p->cut->segments[i].replicas > most ? p->cut->segments[i].replicas : most;
    return most;
}

static void sum_over(sw_grad_list *list, sw_axis axis, uint32_t group, const char *reason)
{
    list->sums[list->n].axis = axis;
    list->sums[list->n].group = group;
    list->sums[list->n].reason = reason;
    list->n++;
}

static void over_tp(const sw_facts *f, const region *r, sw_grad_list *list)
{
    const sw_placement *p = &f->places.on[SW_ON_TP];

    if (p->kind == SW_PLACE_SHARD) {
        if (replicas_of(p) > 1)
            sum_over(list, SW_AXIS_TP, replicas_of(p), "kv_replica");
        return;
    }
    if (f->is_deferred) {
        if (r->exit_on_tp)
            sum_over(list, SW_AXIS_TP, 0, "sequence");
        return;
    }
    if (r->tokens_on_tp)
        sum_over(list, SW_AXIS_TP, 0, "sequence");
    else if (r->exits_partial)
        sum_over(list, SW_AXIS_TP, 0, "partial");
}

static sw_grad_list sums_of(const sw_plan *plan, const sw_facts *f, const region *r)
{
    sw_grad_list list;
    bool is_expert = f->role == SW_ROLE_MOE_EXPERT;

    memset(&list, 0, sizeof list);
    if (!f->is_trained)
        return list;
    if (is_expert && r->extends && f->places.on[SW_ON_EP].kind == SW_PLACE_SHARD) {
        if (sw_mesh_axis_size(plan->mesh, SW_AXIS_EDP) > 1)
            sum_over(&list, SW_AXIS_EDP, 0, "data");
        return list;
    }
    if (plan->tp > 1)
        over_tp(f, r, &list);
    if (f->role == SW_ROLE_MOE_GATE && r->is_moe && plan->ep_mode == SW_EP_AXIS)
        sum_over(&list, SW_AXIS_EP, 0, "partial");
    if (plan->cp > 1 && r->tokens_on_cp)
        sum_over(&list, SW_AXIS_CP, 0, "context");
    if (sw_mesh_axis_size(plan->mesh, SW_AXIS_DP) > 1 && list.n < SW_COUNT(list.sums))
        sum_over(&list, SW_AXIS_DP, 0, "data");
    if (r->is_tied_apart && list.n < SW_COUNT(list.sums))
        sum_over(&list, SW_AXIS_PP, 0, "tied");
    return list;
}

/* Facts with their sums; equal questions are answered once. */
static sw_status finish_param(sw_plan *plan, sw_map *memo, const region *r, sw_spec_param *p, sw_error *err)
{
    struct {
        uint32_t facts;
        uint8_t bits[8];
    } key;
    bool is_new = false;

    memset(&key, 0, sizeof key);
    key.facts = p->facts;
    memcpy(key.bits, r, sizeof *r < sizeof key.bits ? sizeof *r : sizeof key.bits);
    uint32_t *at = sw_map_put(memo, &key, sizeof key, 0, &is_new);
    if (at == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the gradient plan");
    if (!is_new) {
        p->facts = *at;
        return SW_OK;
    }
    void *kept = sw_arena_alloc(plan->arena, sizeof key);
    if (kept == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the gradient plan");
    memcpy(kept, &key, sizeof key);
    sw_map_rekey(at, kept);
    sw_facts facts = plan->facts[p->facts];
    facts.grad = sums_of(plan, &facts, r);
    p->facts = sw_plan_intern_facts(plan, &facts);
    if (p->facts == UINT32_MAX)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the gradient plan");
    *at = p->facts;
    return SW_OK;
}

/* ---- reductions inside a region ---- */

static sw_status add_inner(sw_plan *plan, sw_spec *spec, sw_inner inner, sw_error *err)
{
    uint32_t capacity = spec->n_inner;

    if (!sw_plan_grow(plan->arena, (void **)&spec->inner, &capacity, spec->n_inner, sizeof *spec->inner))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the region of %s", spec->fqn);
    spec->inner[spec->n_inner++] = inner;
    return SW_OK;
}

/* A statistic of the norm p, over tp. */
static sw_status add_statistic(sw_plan *plan, sw_spec *spec, const char *op, const sw_spec_param *p,
                               sw_error *err)
{
    const char **params = sw_arena_zero(plan->arena, 1, sizeof *params);
    char *path = sw_arena_copy(plan->arena, p->path, p->path_length);

    if (params == NULL || path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the region of %s", spec->fqn);
    params[0] = path;
    sw_inner inner = {.op = op, .axis = SW_AXIS_TP, .n_params = 1, .params = params};
    inner.replicas = replicas_of(&plan->facts[p->facts].places.on[SW_ON_TP]);
    return add_inner(plan, spec, inner, err);
}

/* A norm over all heads sees only its rank's: the mean of squares is summed over tp, shared key heads once; a
 * layer norm takes off the mean before, which is summed the same way. */
static sw_status add_statistics(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if ((f->flags & SW_ROW_FULL_NORM) == 0 || f->places.on[SW_ON_TP].kind != SW_PLACE_SHARD)
            continue;
        if ((f->flags & SW_ROW_CENTRED) != 0)
            SW_TRY(add_statistic(plan, spec, "mean", p, err));
        SW_TRY(add_statistic(plan, spec, "mean_square", p, err));
    }
    return SW_OK;
}

/* The routed path under an explicit ep axis: its output is summed, and so is the gradient of its input. */
static sw_status add_routed_sums(sw_plan *plan, sw_spec *spec, sw_error *err)
{
    SW_TRY(
        add_inner(plan, spec, (sw_inner){.op = "sum_routed_output", .axis = SW_AXIS_EP, .replicas = 1}, err));
    return add_inner(plan, spec, (sw_inner){.op = "sum_routed_input_grad", .axis = SW_AXIS_EP, .replicas = 1},
                     err);
}

sw_status sw_finish_gradients(sw_plan *plan, sw_error *err)
{
    sw_map memo = {0};
    sw_status status = SW_OK;

    mark_tied_apart(plan);
    for (uint32_t i = 0; i < plan->n_specs && status == SW_OK; i++) {
        sw_spec *spec = &plan->specs[i];
        region r = look(plan, spec);
        status = add_statistics(plan, spec, err);
        /* An explicit ep axis: every rank runs its own experts on all tokens, and the outputs are summed
         * inside. */
        if (status == SW_OK && r.is_moe && plan->ep_mode == SW_EP_AXIS)
            status = add_routed_sums(plan, spec, err);
        for (uint32_t k = 0; k < spec->n_params && status == SW_OK; k++)
            status = finish_param(plan, &memo, &r, &spec->params[k], err);
    }
    sw_map_clear(&memo);
    return status;
}
