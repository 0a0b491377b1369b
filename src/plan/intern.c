/*
 * Interning: a plan of 100,000 parameters has a few dozen different placements, shapes and facts. Records are
 * compared by their bytes, so every one of them starts zeroed and pointers in them are interned themselves.
 */
#include "plan/intern.h"

#include <string.h>

#include "base/checked.h"
#include "base/status.h"

bool sw_plan_grow(sw_arena *arena, void **array, uint32_t *capacity, uint32_t count, size_t item_bytes)
{
    if (count < *capacity)
        return true;
    if (count > UINT32_MAX / 2)
        return false;
    uint32_t grown = *capacity == 0 ? 8 : *capacity * 2;
    void *fresh = sw_arena_zero(arena, grown, item_bytes);
    if (fresh == NULL)
        return false;
    if (count > 0 && *array != NULL)
        memcpy(fresh, *array, count * item_bytes);
    *array = fresh;
    *capacity = grown;
    return true;
}

const sw_cut *sw_plan_cut(sw_plan *plan, uint32_t n_groups, const sw_segment *segments, uint32_t n_segments)
{
    size_t bytes = sizeof(uint64_t) + n_segments * sizeof(sw_segment);
    uint8_t *key = sw_arena_zero(plan->arena, 1, bytes);
    sw_cut *cut = sw_arena_zero(plan->arena, 1, sizeof *cut);
    sw_segment *copy = sw_arena_zero(plan->arena, n_segments, sizeof *copy);
    bool is_new = false;

    if (key == NULL || cut == NULL || copy == NULL)
        return NULL;
    for (uint32_t i = 0; i < n_segments; i++) { /* field by field: padding stays zero */
        copy[i].extent = segments[i].extent;
        copy[i].unit = segments[i].unit <= 1 ? 0 : segments[i].unit;
        copy[i].replicas = segments[i].replicas <= 1 ? 0 : segments[i].replicas;
    }
    memcpy(key, &n_groups, sizeof n_groups);
    memcpy(key + sizeof(uint64_t), copy, n_segments * sizeof *copy);
    uint32_t *at = sw_map_put(&plan->by_cut, key, bytes, plan->n_cuts, &is_new);
    if (at == NULL)
        return NULL;
    if (!is_new)
        return plan->cuts[*at];
    if (!sw_plan_grow(plan->arena, (void **)&plan->cuts, &plan->cuts_capacity, plan->n_cuts, sizeof(void *)))
        return NULL;
    *cut = (sw_cut){n_groups, n_segments, copy};
    plan->cuts[plan->n_cuts++] = cut;
    return cut;
}

bool sw_dims_fit(const uint64_t *dims, uint32_t n_dims)
{
    uint64_t elems = 1;

    for (uint32_t i = 0; i < n_dims; i++) {
        if (!sw_mul_u64(elems, dims[i], &elems))
            return false;
    }
    return true;
}

const sw_shape *sw_plan_shape(sw_plan *plan, const uint64_t *dims, uint32_t n_dims)
{
    size_t bytes = n_dims * sizeof *dims;
    sw_shape *shape = sw_arena_zero(plan->arena, 1, sizeof *shape + bytes + sizeof *dims);
    bool is_new = false;

    if (shape == NULL)
        return NULL;
    shape->n_dims = n_dims;
    shape->elems = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        shape->dims[i] = dims[i];
        if (!sw_mul_u64(shape->elems, dims[i], &shape->elems))
            return NULL;
    }
    uint32_t *at = sw_map_put(&plan->by_shape, shape->dims, bytes, plan->n_shapes, &is_new);
    if (at == NULL)
        return NULL;
    if (!is_new)
        return plan->shapes[*at];
    if (!sw_plan_grow(plan->arena, (void **)&plan->shapes, &plan->shapes_capacity, plan->n_shapes,
                      sizeof(void *)))
        return NULL;
    plan->shapes[plan->n_shapes++] = shape;
    return shape;
}

uint32_t sw_plan_intern_facts(sw_plan *plan, const sw_facts *facts)
{
    bool is_new = false;
    uint32_t *at = sw_map_put(&plan->by_facts, facts, sizeof *facts, plan->n_facts, &is_new);

    if (at == NULL)
        return UINT32_MAX;
    if (!is_new)
        return *at;
    /* The key must stay where it is, so the array holds copies and the map its own. */
    sw_facts *kept = sw_arena_alloc(plan->arena, sizeof *kept);
    if (kept == NULL || !sw_plan_grow(plan->arena, (void **)&plan->facts, &plan->facts_capacity,
                                      plan->n_facts, sizeof *plan->facts))
        return UINT32_MAX;
    memcpy(kept, facts, sizeof *kept);
    sw_map_rekey(at, kept);
    memcpy(&plan->facts[plan->n_facts], facts, sizeof *facts);
    return plan->n_facts++;
}

sw_status sw_spec_add_param(sw_plan *plan, sw_spec *spec, sw_spec_param param, sw_error *err)
{
    if (!sw_plan_grow(plan->arena, (void **)&spec->params, &spec->params_capacity, spec->n_params,
                      sizeof *spec->params))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the parameters of %s", spec->fqn);
    spec->params[spec->n_params++] = param;
    return SW_OK;
}

sw_spec *sw_plan_find_spec(const sw_plan *plan, const char *fqn, size_t length)
{
    const uint32_t *at = sw_map_find(&plan->by_fqn, fqn, length);
    return at == NULL ? NULL : &plan->specs[*at];
}

sw_spec *sw_plan_find_user(const sw_plan *plan, const char *name)
{
    const char *dot = strrchr(name, '.');

    return sw_plan_find_spec(plan, name, dot == NULL ? 0 : (size_t)(dot - name));
}

sw_status sw_plan_spec_at(sw_plan *plan, const char *fqn, uint32_t fqn_length, sw_spec **out, bool *is_new,
                          sw_error *err)
{
    sw_spec *found = sw_plan_find_spec(plan, fqn, fqn_length);

    *is_new = found == NULL;
    *out = found;
    if (found != NULL)
        return SW_OK;
    if (plan->n_specs >= SW_PLAN_MAX_BOUNDARIES)
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a model",
                       "more than %d boundaries, the last is %.*s", SW_PLAN_MAX_BOUNDARIES,
                       fqn_length < 200 ? (int)fqn_length : 200, fqn);
    char *name = sw_arena_copy(plan->arena, fqn, fqn_length);
    bool fresh = false;
    if (name == NULL ||
        !sw_plan_grow(plan->arena, (void **)&plan->specs, &plan->specs_capacity, plan->n_specs,
                      sizeof *plan->specs) ||
        sw_map_put(&plan->by_fqn, name, fqn_length, plan->n_specs, &fresh) == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for boundary %.*s", (int)fqn_length, fqn);
    sw_spec *spec = &plan->specs[plan->n_specs++];
    *spec = (sw_spec){
        .fqn = name, .fqn_length = fqn_length, .module = SW_NO_MODULE, .layer = -1, .region_dispatch = -1};
    *out = spec;
    return SW_OK;
}

void sw_plan_put_pattern(sw_buffer *out, const char *name, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *dot = memchr(name + at, '.', length - at);
        size_t end = dot == NULL ? length : (size_t)(dot - name);
        size_t digits = at;
        while (digits < end && name[digits] >= '0' && name[digits] <= '9')
            digits++;
        if (digits == end && end > at)
            sw_buffer_putc(out, '#');
        else
            sw_buffer_append(out, name + at, end - at);
        if (dot != NULL)
            sw_buffer_putc(out, '.');
        at = end + 1;
    }
}
