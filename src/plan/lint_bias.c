/*
 * A bias is as long as the output of its weight, those of stacked experts for each expert. Only stored shapes
 * tell, so this holds for any model. Packed weights and companions are left to their own checks.
 */
#include "plan/lint_bias.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/fault.h"

static bool is_bias(const sw_spec_param *p)
{
    static const char leaf[] = "bias";
    uint32_t n = sizeof leaf - 1;

    if (p->path_length < n || memcmp(p->path + p->path_length - n, leaf, n) != 0)
        return false;
    return p->path_length == n || p->path[p->path_length - n - 1] == '.' ||
           p->path[p->path_length - n - 1] == '_';
}

/* Where each path of the boundary stands; empty when it has no bias. */
static void index_paths(sw_plan *plan, const sw_spec *spec, sw_map *map)
{
    bool has_bias = false;

    for (uint32_t i = 0; i < spec->n_params && !has_bias; i++)
        has_bias = is_bias(&spec->params[i]);
    for (uint32_t i = 0; i < spec->n_params && has_bias; i++) {
        bool is_new = false;
        const sw_spec_param *p = &spec->params[i];
        if (sw_map_put(map, p->path, p->path_length, i, &is_new) == NULL) {
            plan->is_out_of_memory = true;
            return;
        }
    }
}

/* "up_proj.weight" of "up_proj.bias"; "experts.up_proj" of "experts.up_proj_bias", and where it is stacked.
 */
static const sw_spec_param *weight_of(const sw_spec *spec, const sw_map *map, const sw_spec_param *bias)
{
    uint32_t stem = bias->path_length - (uint32_t)strlen("bias");
    char path[1024];

    if (!is_bias(bias) || stem + sizeof "weight" > sizeof path)
        return NULL;
    int length = snprintf(path, sizeof path, "%.*sweight", (int)stem, bias->path);
    const uint32_t *at = sw_map_find(map, path, (size_t)length);
    if (at == NULL && stem > 1)
        at = sw_map_find(map, path, stem - 1);
    return at == NULL ? NULL : &spec->params[*at];
}

/* Elements of the bias that a weight may have; 0: its shape does not tell. */
static uint64_t said_by(const sw_facts *weight)
{
    const sw_shape *shape = weight->view != NULL ? weight->view : weight->shape;

    if (shape == NULL || weight->reason != NULL)
        return 0;
    switch (weight->role) {
    case SW_ROLE_NORM:
        return shape->elems;
    case SW_ROLE_COLWISE:
    case SW_ROLE_ROWWISE:
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
    case SW_ROLE_LM_HEAD:
    case SW_ROLE_MOE_EXPERT:
    case SW_ROLE_SHARED_EXPERT:
        return shape->n_dims >= 2 && weight->in_dim >= 0 && shape->dims[weight->in_dim] != 0
                   ? shape->elems / shape->dims[weight->in_dim]
                   : 0;
    default:
        return 0;
    }
}

void sw_lint_bias(sw_plan *plan, const sw_spec *spec)
{
    sw_map map SW_AUTO(sw_map_clear) = {0};

    index_paths(plan, spec, &map);
    for (uint32_t i = 0; i < spec->n_params && map.n_used > 0; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_spec_param *weight = weight_of(spec, &map, p);
        const sw_facts *f = &plan->facts[p->facts];
        uint64_t said = weight == NULL ? 0 : said_by(&plan->facts[weight->facts]);
        if (said == 0 || f->shape == NULL || f->reason != NULL || f->shape->elems == said)
            continue;
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "extents_disagree", spec->fqn, spec->fqn_length,
                            "check that all files are of one checkpoint",
                            "'%.*s' has %" PRIu64 " elements, and its weight '%.*s' gives %" PRIu64,
                            (int)p->path_length, p->path, f->shape->elems, (int)weight->path_length,
                            weight->path, said);
        return;
    }
}
