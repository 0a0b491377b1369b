/* Source shards (apply/source_shards.h). */
#include "apply/source_shards.h"

#include <string.h>

#include "apply/active.h"
#include "base/status.h"
#include "plan/check.h"

enum { NAME = 1024 };

static bool is_expert(const sw_spec *spec, const sw_spec_param *param)
{
    return spec->ep_size > 1 && param->path_length > 8 && memcmp(param->path, "experts.", 8) == 0;
}

/* Axes that data parallelism does not own; cp is inside its domain. */
static void source_grid(const sw_grid *grid, sw_grid *out)
{
    *out = (sw_grid){0};
    for (uint32_t a = 0; a < grid->n_axes; a++) {
        if (grid->axis[a] == SW_AXIS_CP)
            continue;
        out->axis[out->n_axes] = grid->axis[a];
        out->size[out->n_axes++] = grid->size[a];
    }
}

static sw_status fill(sw_source_shard *out, const sw_plan *plan, const sw_spec *spec,
                      const sw_spec_param *param, const sw_active *active, sw_arena *arena, sw_error *err)
{
    const sw_facts *facts = &plan->facts[param->facts];
    bool is_own_mesh = active->expert_grid.n_axes > 0 && is_expert(spec, param);
    char name[NAME];
    size_t length = sw_check_fqn(spec, param, name, sizeof name);

    if (facts->places.on[SW_ON_CP].kind != SW_PLACE_REPLICATE)
        return SW_FAIL(err, SW_E_PLAN, "keep parameters R over cp",
                       "%s: cut over cp, which data parallelism shards over", name);
    out->fqn = sw_arena_copy(arena, name, length);
    if (out->fqn == NULL)
        return sw_arena_fail(arena, "source shards", err);
    source_grid(is_own_mesh ? &active->expert_grid : &active->grid, &out->grid);
    sw_active_places(&out->grid, &facts->places, out->on);
    return SW_OK;
}

/* Both names of a tied pair get the finer placement, axis by axis: S beats R. */
static void join(sw_source_shard *a, sw_source_shard *b)
{
    for (uint32_t k = 0; k < a->grid.n_axes && sw_grid_equal(&a->grid, &b->grid); k++) {
        if (a->on[k].kind == SW_PLACE_SHARD)
            b->on[k] = a->on[k];
        else
            a->on[k] = b->on[k];
    }
}

static sw_status fill_all(sw_source_shards *made, const sw_plan *plan, const sw_active *active, sw_error *err)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < plan->n_specs; s++)
        n += plan->specs[s].n_params;
    made->shards = sw_arena_zero(made->arena, n, sizeof *made->shards);
    if (made->shards == NULL)
        return sw_arena_fail(made->arena, "source shards", err);
    for (uint32_t s = 0; s < plan->n_specs; s++) {
        const sw_spec *spec = &plan->specs[s];
        for (uint32_t i = 0; i < spec->n_params; i++)
            SW_TRY(fill(&made->shards[made->n++], plan, spec, &spec->params[i], active, made->arena, err));
    }
    for (uint32_t i = 0; i < plan->n_tied; i++) {
        sw_source_shard *first = (sw_source_shard *)sw_source_shards_find(made, plan->tied[i].first);
        sw_source_shard *second = (sw_source_shard *)sw_source_shards_find(made, plan->tied[i].second);
        if (first != NULL && second != NULL)
            join(first, second);
    }
    return SW_OK;
}

sw_status sw_source_shards_make(sw_source_shards **out, const sw_plan *plan, const sw_active *active,
                                sw_error *err)
{
    sw_grid dense;

    *out = NULL;
    source_grid(&active->grid, &dense);
    if (dense.n_axes == 0 && active->expert_grid.n_axes == 0)
        return SW_OK;
    sw_arena *arena = sw_arena_create(0);
    sw_source_shards *made = arena == NULL ? NULL : sw_arena_zero(arena, 1, sizeof *made);
    if (made == NULL) {
        sw_arena_destroy(arena);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for source shards");
    }
    made->arena = arena;
    sw_status status = fill_all(made, plan, active, err);
    if (status == SW_OK)
        *out = made;
    else
        sw_source_shards_destroy(made);
    return status;
}

void sw_source_shards_destroy(sw_source_shards *shards)
{
    if (shards != NULL)
        sw_arena_destroy(shards->arena); /* it is in there itself */
}

const sw_source_shard *sw_source_shards_find(const sw_source_shards *shards, const char *fqn)
{
    for (uint32_t i = 0; i < shards->n; i++) {
        if (strcmp(shards->shards[i].fqn, fqn) == 0)
            return &shards->shards[i];
    }
    return NULL;
}
