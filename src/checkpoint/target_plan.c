/*
 * The files of a sharded folder. A plan speaks of parameters by name; every tensor of the source must have
 * its place in it, or be the optimizer state of one that has. What a coordinate holds of a tensor depends on
 * the plan's record of it (its facts) alone, so that each record is worked out once a coordinate.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/slice.h"
#include "checkpoint/target_make.h"
#include "model/shards.h"
#include "plan/layout.h"
#include "plan/plan_data.h"

enum { NO_EXPERT = -1, SHOWN = 200 };

/* Where the plan puts a tensor. */
typedef struct place {
    uint32_t facts; /* UINT32_MAX: nowhere */
    int32_t expert; /* number in its stack */
    uint32_t stage;
} place;

/* What the coordinates of a set hold of a parameter. */
typedef struct param_slices {
    sw_slice_memo *by_coord; /* NULL: not yet needed */
} param_slices;

typedef struct maker {
    sw_target_maker base;
    const sw_store *source;
    const sw_plan *plan;
    place *places;      /* a tensor */
    uint32_t *order;    /* tensors, those of a stage and set together, each in the order of the source */
    uint32_t *starts;   /* of stage and set in `order`: 2 * stages + 1 */
    param_slices *memo; /* of facts */
    uint32_t n_pp, n_tp, n_ep;
    sw_error *err;
} maker;

static void clear_maker(maker *m)
{
    sw_free(m->places);
    sw_free(m->order);
    sw_free(m->starts);
    sw_free(m->memo);
}

/* ---- names ---- */

/* Extents of a tensor as the plan records them; an expert is one row of its stack. */
static bool has_planned_shape(const sw_store_tensor *t, const sw_facts *f, int32_t expert)
{
    uint32_t skip = expert == NO_EXPERT ? 0 : 1;
    const sw_shape *planned = f->shape;

    return planned != NULL && planned->n_dims == t->shape->n_dims + skip &&
           memcmp(planned->dims + skip, t->shape->dims, t->shape->n_dims * sizeof *planned->dims) == 0;
}

static sw_status set_place(maker *m, const char *name, size_t length, place where)
{
    const sw_store_tensor *t = sw_store_find(m->source, name, length);
    const sw_facts *f = &m->plan->facts[where.facts];

    if (t == NULL || t->state_of != UINT32_MAX)
        return SW_OK; /* a stacked name, or one of a tied pair that is stored under the other */
    place *p = &m->places[t - m->source->tensors];
    if (p->facts != UINT32_MAX)
        return SW_FAIL(m->err, SW_E_PLAN, "make the plan again", "the plan names %.*s twice", SHOWN, t->name);
    if (!has_planned_shape(t, f, where.expert) || f->dtype != t->dtype)
        return SW_FAIL(m->err, SW_E_PLAN, "make the plan again from this model",
                       "%.*s: shape or dtype (%.60s) are not those of the plan", SHOWN, t->name,
                       t->dtype_word);
    *p = where;
    return SW_OK;
}

/* "FQN.path", and the names of a stack's sources, put together in one buffer. */
static sw_status place_spec(maker *m, const sw_spec *spec, sw_buffer *name)
{
    place where = {0, NO_EXPERT, spec->pp_stage};

    name->length = 0;
    sw_buffer_append(name, spec->fqn, spec->fqn_length);
    if (spec->fqn_length > 0)
        sw_buffer_putc(name, '.');
    size_t stem = name->length;
    for (uint32_t i = 0; i < spec->n_params; i++) {
        name->length = stem;
        sw_buffer_append(name, spec->params[i].path, spec->params[i].path_length);
        where.facts = spec->params[i].facts;
        if (name->failed)
            return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for a name");
        SW_TRY(set_place(m, name->bytes, name->length, where));
    }
    for (uint32_t i = 0; i < spec->n_stacks; i++) {
        const sw_ep_stack *s = &spec->stacks[i];
        where.facts = spec->params[s->param].facts;
        for (uint32_t k = 0; k < s->n; k++) {
            name->length = stem;
            sw_buffer_printf(name, "%s%" PRIu32 "%s", s->prefix, k, s->suffix);
            where.expert = (int32_t)k;
            if (name->failed)
                return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for a name");
            SW_TRY(set_place(m, name->bytes, name->length, where));
        }
    }
    return SW_OK;
}

static void clear_buffer(sw_buffer *buffer)
{
    sw_buffer_clear(buffer);
}

static sw_status find_places(maker *m)
{
    sw_buffer name SW_AUTO(clear_buffer) = {0};
    const char *first = NULL;
    uint32_t n_lost = 0;

    m->places = sw_alloc_zero((size_t)m->source->n_tensors + 1, sizeof *m->places);
    if (m->places == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for the places of tensors");
    for (uint32_t i = 0; i < m->source->n_tensors; i++)
        m->places[i].facts = UINT32_MAX;
    for (uint32_t i = 0; i < m->plan->n_specs; i++)
        SW_TRY(place_spec(m, &m->plan->specs[i], &name));
    for (uint32_t i = 0; i < m->source->n_tensors; i++) {
        uint32_t base = m->source->tensors[i].state_of;
        if (base != UINT32_MAX)
            m->places[i] = m->places[base];
        if (m->places[i].facts != UINT32_MAX)
            continue;
        first = first == NULL ? m->source->tensors[i].name : first;
        n_lost++;
    }
    if (n_lost == 0)
        return SW_OK;
    return SW_FAIL(m->err, SW_E_PLAN, "make the plan from this model",
                   "the plan has no place for %" PRIu32 " of %" PRIu32 " tensors, the first is %.*s", n_lost,
                   m->source->n_tensors, SHOWN, first);
}

/* What headers are made from again when they are written. */
static sw_status note_facts(maker *m)
{
    sw_target *target = m->base.target;
    uint32_t *facts = sw_arena_zero(target->arena, m->source->n_tensors, sizeof *facts);

    if (facts == NULL)
        return sw_arena_fail(target->arena, "the places of tensors", m->err);
    for (uint32_t i = 0; i < m->source->n_tensors; i++)
        facts[i] = m->places[i].facts;
    target->plan = m->plan;
    target->facts = facts;
    return SW_OK;
}

/* ---- file sets ---- */

/* Routed experts under TP-extend-EP stand in files of their own, one an ep coordinate. */
static bool is_in_expert_set(const maker *m, const sw_facts *f)
{
    return m->plan->ep_mode == SW_EP_TP_EXTEND && f->places.on[SW_ON_EP].kind == SW_PLACE_SHARD;
}

static sw_slice_coord slice_coord(const maker *m, bool is_expert, uint32_t tp, uint32_t ep)
{
    bool has_ep = is_expert || m->plan->ep_mode == SW_EP_AXIS;

    return (sw_slice_coord){.tp = tp,
                            .n_tp = is_expert ? 1 : m->n_tp,
                            .ep = has_ep ? ep : 0,
                            .n_ep = has_ep ? m->n_ep : 1,
                            .has_tp = !is_expert,
                            .has_ep = has_ep};
}

/* Tensors by stage and set, so that a file looks only at its own. */
static sw_status sort_tensors(maker *m)
{
    uint32_t n_keys = 2 * m->n_pp;

    m->order = sw_alloc_zero((size_t)m->source->n_tensors + 1, sizeof *m->order);
    m->starts = sw_alloc_zero((size_t)n_keys + 2, sizeof *m->starts);
    if (m->order == NULL || m->starts == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for the order of tensors");
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < m->source->n_tensors; i++) {
            const place *p = &m->places[i];
            uint32_t key = 2 * p->stage + is_in_expert_set(m, &m->plan->facts[p->facts]);
            if (p->stage >= m->n_pp)
                return SW_FAIL(m->err, SW_E_PLAN, "make the plan again",
                               "%.*s is on stage %" PRIu32 " of %" PRIu32, SHOWN, m->source->tensors[i].name,
                               p->stage, m->n_pp);
            if (pass == 0)
                m->starts[key + 2]++;
            else
                m->order[m->starts[key + 1]++] = i;
        }
        for (uint32_t k = 2; pass == 0 && k < n_keys + 2; k++)
            m->starts[k] += m->starts[k - 1];
    }
    return SW_OK;
}

/* What the file holds of a tensor; NULL in *out: nothing at all. */
static sw_status held_of(maker *m, uint32_t tensor, sw_slice_coord at, const sw_held **out)
{
    const place *p = &m->places[tensor];
    const sw_facts *f = &m->plan->facts[p->facts];
    uint32_t n_coords = at.n_tp * at.n_ep;
    param_slices *known = &m->memo[p->facts];

    if (known->by_coord == NULL)
        known->by_coord = sw_arena_zero(m->base.target->arena, n_coords, sizeof *known->by_coord);
    if (known->by_coord == NULL)
        return sw_arena_fail(m->base.target->arena, "the layout of the files", m->err);
    sw_slice_memo *slice = &known->by_coord[at.tp * at.n_ep + at.ep];
    if (!slice->is_made) {
        sw_status status = sw_slice_make(&slice->held, f, at, m->base.target->arena, m->err);
        if (status != SW_OK) {
            sw_error_context(m->err, "%.*s", SHOWN, m->source->tensors[tensor].name);
            return status;
        }
        slice->is_made = true;
    }
    *out = p->expert == NO_EXPERT ? &slice->held : sw_slice_expert(slice, (uint64_t)p->expert);
    return SW_OK;
}

/* ---- files ---- */

static sw_status add_file(maker *m, uint32_t pp, bool is_expert, uint32_t tp, uint32_t ep)
{
    sw_target *target = m->base.target;
    sw_slice_coord at = slice_coord(m, is_expert, tp, ep);
    sw_coord coord = {(int32_t)pp, at.has_tp ? (int32_t)tp : -1, at.has_ep ? (int32_t)ep : -1};
    uint32_t key = 2 * pp + is_expert;
    char name[SW_COORD_TEXT_BYTES];

    sw_coord_file_name(coord, name);
    sw_target_file *file = &target->files[target->n_files];
    *file = (sw_target_file){.name = sw_arena_copy(target->arena, name, strlen(name)),
                             .pp = coord.pp,
                             .tp = coord.tp,
                             .ep = coord.ep,
                             .first_part = target->n_parts};
    if (file->name == NULL)
        return sw_arena_fail(target->arena, "the names of the files", m->err);
    target->n_files++;
    for (uint32_t i = m->starts[key]; i < m->starts[key + 1]; i++) {
        const sw_held *held = NULL;
        SW_TRY(held_of(m, m->order[i], at, &held));
        if (held != NULL)
            SW_TRY(sw_target_add(&m->base, m->order[i], held));
    }
    if (file->n_parts == 0) { /* a stage without experts, say: no file */
        target->n_files--;
        return SW_OK;
    }
    return sw_target_lay_out(&m->base, target->n_files - 1);
}

static sw_status add_files(maker *m)
{
    uint32_t n_dense_ep = m->plan->ep_mode == SW_EP_AXIS ? m->n_ep : 1;
    uint32_t n_expert_ep = m->plan->ep_mode == SW_EP_TP_EXTEND ? m->n_ep : 0;

    for (uint32_t pp = 0; pp < m->n_pp; pp++) {
        for (uint32_t tp = 0; tp < m->n_tp; tp++) {
            for (uint32_t ep = 0; ep < n_dense_ep; ep++)
                SW_TRY(add_file(m, pp, false, tp, ep));
        }
    }
    for (uint32_t pp = 0; pp < m->n_pp; pp++) {
        for (uint32_t ep = 0; ep < n_expert_ep; ep++)
            SW_TRY(add_file(m, pp, true, 0, ep));
    }
    return SW_OK;
}

static sw_status make(maker *m, sw_target **out)
{
    uint64_t n_files = (uint64_t)m->n_pp * m->n_tp;

    if (m->plan->ep_mode == SW_EP_AXIS)
        n_files *= m->n_ep;
    else if (m->plan->ep_mode == SW_EP_TP_EXTEND)
        n_files += (uint64_t)m->n_pp * m->n_ep;
    if (n_files > SW_MAX_SHARDS)
        return SW_FAIL(m->err, SW_E_LIMIT, "use smaller model-parallel sizes",
                       "a mesh with %" PRIu64 " model-parallel coordinates, at most %d files are written",
                       n_files, SW_MAX_SHARDS);
    SW_TRY(sw_target_begin(&m->base, out, m->source, (uint32_t)n_files, m->err));
    m->memo = sw_alloc_zero((size_t)m->plan->n_facts + 1, sizeof *m->memo);
    if (m->memo == NULL)
        return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "no memory for the layout of the files");
    SW_TRY(find_places(m));
    SW_TRY(note_facts(m));
    SW_TRY(sort_tensors(m));
    return add_files(m);
}

sw_status sw_target_of_plan(sw_target **out, const sw_store *source, const sw_plan *plan, sw_error *err)
{
    maker m SW_AUTO(clear_maker) = {.source = source, .plan = plan, .err = err};

    *out = NULL;
    m.n_pp = sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);
    m.n_tp = sw_mesh_axis_size(plan->mesh, SW_AXIS_TP);
    m.n_ep = sw_mesh_axis_size(plan->mesh, SW_AXIS_EP);
    sw_status status = make(&m, out);
    if (status != SW_OK) {
        sw_target_destroy(*out);
        *out = NULL;
    }
    return status;
}
