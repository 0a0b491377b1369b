/*
 * Sums of gradients by the plan's grad_sum (apply/gradients.h). A sum over neighbours is for pieces that they
 * all hold: where a fused parameter has other rows too (queries beside keys of which there are few), those
 * take no part in it, and the parameter is several stretches.
 */
#include "apply/gradients.h"

#include "apply/applied.h"
#include "base/status.h"
#include "dtensor/runs.h"
#include "dtensor/share.h"
#include "mesh/shard.h"
#include "parallel/owned.h"

typedef struct listing {
    sw_applied *applied;
    sw_gradient *list;
    uint32_t n;
    uint32_t capacity;
    sw_error *err;
} listing;

/* ---- groups ---- */

/* Collective for neighbours that nobody has asked for before. */
static sw_status group_of(const sw_applied *a, const sw_grad_sum *sum, const sw_group **out, sw_error *err)
{
    *out = sw_active_group(&a->active, sum->axis);
    if (sum->group == 0 || sum->group >= (*out)->size)
        return SW_OK;
    return sw_comm_neighbours(a->active.comm, sum->axis, sum->group, out, err);
}

/*
 * All groups are made before ranks list their sums: each has rows of its own, of some parameters none, and
 * may fail alone. Collective.
 */
static sw_status make_groups(const sw_applied *a, sw_error *err)
{
    const sw_group *group = NULL;

    for (uint32_t i = 0; i < a->plan->n_facts; i++) {
        const sw_grad_list *grad = &a->plan->facts[i].grad;
        for (uint32_t k = 0; k < grad->n; k++)
            SW_TRY(group_of(a, &grad->sums[k], &group, err));
    }
    return SW_OK;
}

/* A group each; neighbours' sums only where rows are replicas. */
static sw_status add_sums(const listing *l, const sw_facts *facts, bool are_replicas, sw_gradient *g)
{
    for (uint32_t i = 0; i < facts->grad.n; i++) {
        const sw_grad_sum *sum = &facts->grad.sums[i];
        const sw_group *group = NULL;
        if (sum->group > 0 && !are_replicas)
            continue;
        SW_TRY(group_of(l->applied, sum, &group, l->err));
        if (group->size > 1)
            g->sums[g->n_sums++] = group;
    }
    return SW_OK;
}

/* ---- rows that several ranks hold ---- */

/* The placement whose pieces have replicas in some of its segments and not in others; NULL: none has. */
static const sw_placement *mixed_cut(const sw_applied_parameter *p)
{
    for (uint32_t k = 0; k < p->layout.grid.n_axes; k++) {
        const sw_placement *on = &p->layout.on[k];
        if (on->kind == SW_PLACE_SHARD && on->cut != NULL &&
            sw_shard_replicas(on, p->layout.grid.size[k]) == 0)
            return on;
    }
    return NULL;
}

/* Rows of a cut's dim that are in segments with replicas, or in those without. */
static sw_status rows_of(sw_rows *out, const sw_cut *cut, bool are_replicas, sw_arena *arena, sw_error *err)
{
    sw_range *ranges = sw_arena_zero(arena, (size_t)cut->n_groups * cut->n_segments, sizeof *ranges);
    uint64_t at = 0;

    *out = (sw_rows){.ranges = ranges};
    if (ranges == NULL)
        return sw_arena_fail(arena, "sums of gradients", err);
    for (uint32_t i = 0; i < cut->n_groups * cut->n_segments; i++) {
        const sw_segment *segment = &cut->segments[i % cut->n_segments];
        sw_range *last = out->n == 0 ? NULL : &ranges[out->n - 1];
        bool is_wanted = (segment->replicas > 1) == are_replicas && segment->extent > 0;
        if (is_wanted && last != NULL && last->end == at)
            last->end += segment->extent;
        else if (is_wanted)
            ranges[out->n++] = (sw_range){at, at + segment->extent};
        out->count += is_wanted ? segment->extent : 0;
        at += segment->extent;
    }
    return SW_OK;
}

/* Those of them that are here, as a box of the local tensor. */
static sw_status make_box(sw_box *out, const listing *l, const sw_applied_parameter *p, uint32_t dim,
                          const sw_rows *wanted)
{
    const sw_share mine = {.holder = p->at};
    sw_arena *arena = l->applied->arena;
    sw_rows held;
    sw_rows both;

    *out = (sw_box){.elems = 1};
    for (uint32_t d = 0; d < p->layout.n_dims; d++) {
        SW_TRY(sw_rows_whole(&out->along[d], p->dims[d], arena, l->err));
        if (d == dim) {
            SW_TRY(sw_tensor_layout_rows(&held, &p->layout, d, &mine, arena, l->err));
            SW_TRY(sw_rows_meet(&both, &held, wanted, arena, l->err));
            SW_TRY(sw_rows_places(&out->along[d], &both, &held, arena, l->err));
        }
        out->elems *= out->along[d].count;
    }
    return SW_OK;
}

/* ---- entries ---- */

/* Room for one more, at the end of the list. */
static sw_status more(listing *l, sw_gradient **out)
{
    if (l->n == l->capacity) {
        uint32_t capacity = l->capacity < 64 ? 64 : l->capacity * 2;
        sw_gradient *list = sw_arena_zero(l->applied->arena, capacity, sizeof *list);
        if (list == NULL)
            return sw_arena_fail(l->applied->arena, "sums of gradients", l->err);
        for (uint32_t i = 0; i < l->n; i++)
            list[i] = l->list[i];
        l->list = list;
        l->capacity = capacity;
    }
    *out = &l->list[l->n++];
    return SW_OK;
}

/* What this rank counts of a stretch: of data-parallel copies the first. */
static sw_status count_owned(const listing *l, const sw_range *all, uint32_t n, sw_run run, sw_gradient *g)
{
    sw_range *owned = sw_arena_zero(l->applied->arena, n, sizeof *owned);

    if (owned == NULL)
        return sw_arena_fail(l->applied->arena, "sums of gradients", l->err);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t begin = all[i].begin > run.begin ? all[i].begin : run.begin;
        uint64_t end = all[i].end < run.begin + run.length ? all[i].end : run.begin + run.length;
        if (begin < end)
            owned[g->n_owned++] = (sw_range){begin - run.begin, end - run.begin};
    }
    g->owned = owned;
    return SW_OK;
}

/* Is there a lower rank, beyond the layout's own axes, that holds the same? */
static bool is_copy(const listing *l, const sw_applied_parameter *p)
{
    const sw_active *active = &l->applied->active;
    bool is_expert = active->expert_grid.n_axes > 0 && sw_grid_equal(&p->layout.grid, &active->expert_grid);

    return active->coord.at[is_expert ? SW_AXIS_EDP : SW_AXIS_DP] > 0;
}

/* One stretch of a parameter's gradient. */
static sw_status add(listing *l, const sw_applied_parameter *p, sw_run run, bool are_replicas)
{
    sw_storage *storage = p->parameter->tensor->storage;
    size_t width = sw_elem_bytes(sw_gradient_dtype(storage->dtype));
    const sw_range *owned = NULL;
    uint32_t n_owned = 0;
    sw_gradient *g = NULL;

    SW_TRY(more(l, &g));
    *g = (sw_gradient){
        .storage = storage, .values = (char *)storage->gradient + run.begin * width, .n_elems = run.length};
    SW_TRY(add_sums(l, p->facts, are_replicas, g));
    if (is_copy(l, p))
        return SW_OK;
    SW_TRY(sw_owned_elements(&p->layout, p->at, l->applied->arena, &owned, &n_owned, l->err));
    return count_owned(l, owned, n_owned, run, g);
}

/* Rows with replicas and rows without, in turn. */
static sw_status add_mixed(listing *l, const sw_applied_parameter *p, const sw_placement *cut)
{
    for (int are_replicas = 0; are_replicas < 2; are_replicas++) {
        sw_rows wanted;
        sw_box box;
        sw_runs runs;
        sw_run run;
        SW_TRY(rows_of(&wanted, cut->cut, are_replicas != 0, l->applied->arena, l->err));
        SW_TRY(make_box(&box, l, p, (uint32_t)cut->dim, &wanted));
        if (box.elems == 0)
            continue;
        sw_runs_begin(&runs, &box, p->dims, p->layout.n_dims);
        while (sw_runs_next(&runs, &run))
            SW_TRY(add(l, p, run, are_replicas != 0));
    }
    return SW_OK;
}

static sw_status fill(listing *l)
{
    for (uint32_t i = 0; i < l->applied->n_parameters; i++) {
        const sw_applied_parameter *p = &l->applied->parameters[i];
        if (p->parameter->stack != NULL || p->facts == NULL ||
            p->parameter->tensor->storage->gradient == NULL)
            continue; /* members are in their stack */
        const sw_placement *cut = mixed_cut(p);
        if (cut != NULL)
            SW_TRY(add_mixed(l, p, cut));
        else
            SW_TRY(add(l, p, (sw_run){0, sw_tensor_elems(p->parameter->tensor)}, true));
    }
    return SW_OK;
}

sw_status sw_apply_gradients(sw_gradients **out, const sw_net *net, size_t bucket_bytes, sw_error *err)
{
    listing l = {.applied = sw_applied_of(net), .err = err};

    if (l.applied == NULL)
        return SW_FAIL(err, SW_E_ARGUMENT, "apply a plan first", "no plan was applied to the net");
    sw_comm *comm = l.applied->active.comm;
    SW_TRY(make_groups(l.applied, err));
    sw_status status = fill(&l);
    if (status == SW_OK)
        status =
            sw_gradients_create(out, l.list, l.n, sw_comm_group(comm, SW_GROUP_STAGE), bucket_bytes, err);
    return sw_comm_agree(comm, status, err);
}
