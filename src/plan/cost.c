/*
 * The arithmetic of costs. A chunk of an axis is never larger than the chunk before it, so the first rank of
 * a stage holds the most of every parameter and the last one the least: totals need two coordinates, not all
 * ranks.
 */
#include "plan/cost.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/intern.h"

uint32_t sw_cost_axis_size(const sw_plan *plan, int on)
{
    const uint32_t sizes[SW_ON_COUNT_] = {
        [SW_ON_CP] = plan->cp, [SW_ON_EP] = plan->ep, [SW_ON_TP] = plan->tp};
    return sizes[on];
}

sw_cost_coord sw_cost_coord_of(const sw_plan *plan, uint32_t rank)
{
    sw_cost_coord at = {{0}};
    sw_mesh_coord coord = {{0}};

    if (sw_mesh_coord_of(plan->mesh, rank, &coord, NULL) != SW_OK)
        return at;
    at.at[SW_ON_CP] = coord.at[SW_AXIS_CP];
    at.at[SW_ON_EP] = coord.at[SW_AXIS_EP];
    at.at[SW_ON_TP] = coord.at[SW_AXIS_TP];
    return at;
}

const sw_shape *sw_cost_shape(const sw_facts *facts)
{
    return facts->view != NULL ? facts->view : facts->shape;
}

uint32_t sw_cost_local_dims(const sw_plan *plan, const sw_facts *facts, const sw_cost_coord *at,
                            uint64_t dims[SW_MAX_DIMS])
{
    const sw_shape *shape = sw_cost_shape(facts);
    uint32_t n_dims = shape == NULL ? 0 : shape->n_dims < SW_MAX_DIMS ? shape->n_dims : SW_MAX_DIMS;

    for (uint32_t i = 0; i < n_dims; i++)
        dims[i] = shape->dims[i];
    for (int on = 0; on < SW_ON_COUNT_; on++) {
        const sw_placement *p = &facts->places.on[on];
        uint32_t dim = 0;
        if (p->kind == SW_PLACE_SHARD && sw_placement_dim(p, n_dims, &dim))
            dims[dim] = sw_shard_local_extent(p, dims[dim], sw_cost_axis_size(plan, on), at->at[on]);
    }
    return n_dims;
}

uint64_t sw_cost_local_elems(const sw_plan *plan, const sw_facts *facts, const sw_cost_coord *at)
{
    uint64_t dims[SW_MAX_DIMS];
    uint64_t elems = 1;
    uint32_t n_dims = sw_cost_local_dims(plan, facts, at, dims);

    for (uint32_t i = 0; i < n_dims; i++)
        elems *= dims[i]; /* no more than the elements of the whole, whose product was checked */
    return sw_cost_shape(facts) == NULL ? 0 : elems;
}

uint64_t sw_cost_bytes(sw_dtype dtype, uint64_t elems)
{
    uint64_t bits = sw_dtype_bits(dtype);
    return bits >= 8 ? elems * (bits / 8) : (elems * bits + 7) / 8;
}

uint32_t sw_cost_replicas(const sw_placement *placement, uint32_t *least)
{
    uint32_t most = 1;

    *least = placement->cut == NULL || placement->cut->n_segments == 0 ? 1 : UINT32_MAX;
    for (uint32_t i = 0; placement->cut != NULL && i < placement->cut->n_segments; i++) {
        uint32_t replicas = placement->cut->segments[i].replicas;
        replicas = replicas == 0 ? 1 : replicas;
        most = replicas > most ? replicas : most;
        *least = replicas < *least ? replicas : *least;
    }
    return most;
}

void sw_cost_copies(const sw_plan *plan, const sw_facts *facts, uint64_t *least, uint64_t *most)
{
    uint64_t few = sw_mesh_ranks(plan->mesh) / sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);
    uint64_t many = few;

    for (int on = 0; on < SW_ON_COUNT_; on++) {
        const sw_placement *p = &facts->places.on[on];
        uint32_t size = sw_cost_axis_size(plan, on);
        uint32_t fewest = 1;
        uint32_t replicas = sw_cost_replicas(p, &fewest);
        if (p->kind == SW_PLACE_REPLICATE)
            continue;
        many = many / size * replicas;
        few = few / size * fewest;
    }
    *least = few;
    *most = many;
}

/* ---- what a rank holds ---- */

static sw_cost_load load_of(const sw_plan *plan, const sw_facts *facts, const sw_cost_coord *at)
{
    sw_cost_load load = {.elems = sw_cost_local_elems(plan, facts, at)};

    load.param_bytes = sw_cost_bytes(facts->dtype, load.elems);
    if (facts->is_trained) {
        load.grad_bytes = load.param_bytes;
        load.optimizer_bytes = load.elems * SW_COST_OPTIMIZER_BYTES;
    }
    return load;
}

static void add_load(sw_cost_load *to, const sw_cost_load *load)
{
    to->elems += load->elems;
    to->param_bytes += load->param_bytes;
    to->grad_bytes += load->grad_bytes;
    to->optimizer_bytes += load->optimizer_bytes;
}

static uint64_t all_bytes(const sw_cost_load *load)
{
    return load->param_bytes + load->grad_bytes + load->optimizer_bytes;
}

/* Loads of the first and the last rank of a stage. */
typedef struct stage_load {
    sw_cost_load first;
    sw_cost_load last;
} stage_load;

static void count_global(const sw_facts *facts, sw_cost_totals *out)
{
    const sw_shape *shape = sw_cost_shape(facts);
    double bytes = shape == NULL ? 0 : (double)sw_cost_bytes(facts->dtype, shape->elems);

    out->bytes += bytes;
    bool on_tp = facts->places.on[SW_ON_TP].kind == SW_PLACE_SHARD;
    bool on_ep = facts->places.on[SW_ON_EP].kind == SW_PLACE_SHARD;
    if (on_tp && on_ep)
        out->bytes_on_both += bytes;
    else if (on_tp)
        out->bytes_on_tp += bytes;
    else if (on_ep)
        out->bytes_on_ep += bytes;
}

/* The spec that stores the tensor of a tied alias, or NULL. */
static const sw_spec *storing(const sw_plan *plan)
{
    enum { PAIRS = 16 }; /* more than any model ties; a file may claim anything */

    for (uint32_t i = 0; i < plan->n_tied && i < PAIRS; i++) {
        const sw_spec *spec = sw_plan_find_user(plan, plan->tied[i].first);
        if (spec != NULL && !spec->is_tied_alias)
            return spec;
    }
    return NULL;
}

static void add_spec(const sw_plan *plan, const sw_spec *spec, const stage_load *loads, stage_load *stage)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        add_load(&stage->first, &loads[spec->params[i].facts].first);
        add_load(&stage->last, &loads[spec->params[i].facts].last);
    }
    /* The other use of a tied tensor needs it too when it runs in another stage. */
    const sw_spec *stored = spec->is_tied_alias ? storing(plan) : NULL;
    if (stored != NULL && stored->pp_stage != spec->pp_stage)
        add_spec(plan, stored, loads, stage);
}

static void choose(const sw_plan *plan, const stage_load *stages, uint32_t n_stages, sw_cost_totals *out)
{
    uint32_t fullest = 0;
    uint32_t emptiest = 0;
    uint32_t ranks = sw_mesh_ranks(plan->mesh) / sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);

    for (uint32_t i = 1; i < n_stages; i++) {
        if (all_bytes(&stages[i].first) > all_bytes(&stages[fullest].first))
            fullest = i;
        if (all_bytes(&stages[i].last) < all_bytes(&stages[emptiest].last))
            emptiest = i;
    }
    out->most = stages[fullest].first;
    out->least = stages[emptiest].last;
    out->most_rank = fullest * ranks;
    out->least_rank = emptiest * ranks + ranks - 1;
}

static void drop(void *memory)
{
    sw_free(*(void **)memory);
}

sw_status sw_cost_total(const sw_plan *plan, sw_cost_totals *out, sw_error *err)
{
    uint32_t n_stages = sw_mesh_axis_size(plan->mesh, SW_AXIS_PP);
    sw_cost_coord first = {{0}};
    sw_cost_coord last = {
        {plan->cp - 1, plan->ep - 1, plan->tp - 1}
    };
    stage_load *loads SW_AUTO(drop) = sw_alloc_zero((size_t)plan->n_facts + 1, sizeof *loads);
    stage_load *stages SW_AUTO(drop) = sw_alloc_zero(n_stages, sizeof *stages);

    memset(out, 0, sizeof *out);
    if (loads == NULL || stages == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the totals of a plan");
    for (uint32_t i = 0; i < plan->n_facts; i++) {
        loads[i].first = load_of(plan, &plan->facts[i], &first);
        loads[i].last = load_of(plan, &plan->facts[i], &last);
    }
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *spec = &plan->specs[i];
        add_spec(plan, spec, loads, &stages[spec->pp_stage < n_stages ? spec->pp_stage : n_stages - 1]);
        for (uint32_t k = 0; k < spec->n_params; k++)
            count_global(&plan->facts[spec->params[k].facts], out);
    }
    choose(plan, stages, n_stages, out);
    return SW_OK;
}

/* ---- what a step moves ---- */

/* Extent of a dim of the mathematics; 0 when the parameter has none, or is stored in another unit (packed).
 */
static uint64_t extent_at(const sw_facts *facts, int dim)
{
    const sw_shape *shape = sw_cost_shape(facts);
    bool is_plain = facts->dtype < SW_DTYPE_F4; /* a float type, or not known */

    if (shape == NULL || dim < 0 || (uint32_t)dim >= shape->n_dims || !is_plain)
        return 0;
    return shape->dims[dim];
}

/* The first parameter of a role that is a matrix. */
static const sw_facts *matrix_of(const sw_plan *plan, const sw_spec *spec, sw_role role)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        if (f->role == role && sw_cost_shape(f) != NULL && sw_cost_shape(f)->n_dims >= 2)
            return f;
    }
    return NULL;
}

uint64_t sw_cost_hidden(const sw_plan *plan)
{
    uint64_t embedded = 0;

    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *s = &plan->specs[i];
        if (s->is_tower)
            continue;
        if (s->type == SW_BOUNDARY_NORM && s->layer >= 0 && s->n_params > 0) {
            const sw_shape *shape = plan->facts[s->params[0].facts].shape;
            if (shape != NULL && shape->n_dims == 1)
                return shape->dims[0];
        }
        const sw_facts *table = s->type == SW_BOUNDARY_EMBED ? matrix_of(plan, s, SW_ROLE_EMBED) : NULL;
        if (table != NULL && embedded == 0)
            embedded = extent_at(table, table->in_dim);
    }
    return embedded;
}

sw_cost_widths sw_cost_widths_of(const sw_plan *plan, const sw_spec *spec, uint64_t hidden)
{
    sw_cost_widths widths = {0};
    const sw_spec *stored = spec->is_tied_alias ? storing(plan) : spec;
    const sw_facts *row = matrix_of(plan, spec, SW_ROLE_ROWWISE);

    stored = stored == NULL ? spec : stored;
    const sw_facts *table = matrix_of(plan, stored, SW_ROLE_EMBED);
    table = table != NULL ? table : matrix_of(plan, stored, SW_ROLE_LM_HEAD);
    switch (spec->type) {
    case SW_BOUNDARY_EMBED: /* token ids enter */
        widths.out = table == NULL ? hidden : extent_at(table, table->in_dim);
        return widths;
    case SW_BOUNDARY_LM_HEAD:
        widths.in = table == NULL ? hidden : extent_at(table, table->in_dim);
        widths.out = table == NULL ? 0 : extent_at(table, table->out_dim);
        return widths;
    default:
        /* What a block adds to the residual stream is as wide as what it reads. */
        widths.in = row == NULL ? 0 : extent_at(row, row->out_dim);
        if (widths.in == 0 && !spec->is_tower)
            widths.in = hidden;
        widths.out = widths.in;
        return widths;
    }
}

double sw_cost_traffic(const sw_plan *plan, sw_collective collective, sw_axis axis, uint64_t width)
{
    double ranks = sw_mesh_axis_size(plan->mesh, axis);
    double bytes = (double)width * SW_COST_ACTIVATION_BYTES;
    double share = (ranks - 1) / ranks; /* of a tensor, what the others hold */

    if (axis == SW_AXIS_CP) /* a tensor gathered over cp has the tokens of every cp rank */
        bytes *= ranks;
    switch (collective) {
    case SW_COLL_ALL_GATHER:
    case SW_COLL_REDUCE_SCATTER:
        return bytes * share;
    case SW_COLL_ALL_REDUCE:
        return 2 * bytes * share;
    case SW_COLL_ALL_TO_ALL:
        return bytes * share / ranks;
    default:
        return 0;
    }
}

/* Local rows of a matrix along its output (or input) side. */
static uint64_t local_rows(const sw_plan *plan, const sw_facts *facts, int dim)
{
    sw_cost_coord first = {{0}};
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = sw_cost_local_dims(plan, facts, &first, dims);

    return dim >= 0 && (uint32_t)dim < n_dims && extent_at(facts, dim) != 0 ? dims[dim] : 0;
}

uint64_t sw_cost_kv_width(const sw_plan *plan, const sw_spec *spec)
{
    const sw_facts *fused = matrix_of(plan, spec, SW_ROLE_FUSED_QKV);
    const sw_facts *out = matrix_of(plan, spec, SW_ROLE_ROWWISE);
    uint64_t rows = 0;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        bool is_matrix = sw_cost_shape(f) != NULL && sw_cost_shape(f)->n_dims >= 2;
        bool is_kv = f->layout == SW_LAYOUT_KV_HEADS || f->layout == SW_LAYOUT_KV_STACKED;
        if (is_kv && f->role == SW_ROLE_COLWISE && is_matrix)
            rows += local_rows(plan, f, f->out_dim);
    }
    if (rows > 0 || fused == NULL || out == NULL)
        return rows;
    /* What of a fused matrix is not query rows: those are as many as the output projection reads. */
    uint64_t all = local_rows(plan, fused, fused->out_dim);
    uint64_t queries = local_rows(plan, out, out->in_dim);
    return all > queries ? all - queries : 0;
}
