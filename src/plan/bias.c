/*
 * Biases under tp. A bias of a row weight is whole and must enter the sum once: after the boundary's exit
 * (deferred), or on rank 0 only where the region weights it before the exit (experts). A bias of a column
 * weight is cut as its weight is, over ep too. All are checked on the final plan, so that an override or a
 * loaded file is held to the same.
 */
#include "plan/finish.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/classify.h"
#include "plan/derive.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/place.h"

uint32_t sw_spec_partial_outputs(const sw_spec *spec)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->out_src.n; i++)
        n += spec->out_src.entries[i].places.on[SW_ON_TP].kind == SW_PLACE_PARTIAL;
    return n;
}

/* Paths of one boundary's parameters; a boundary without biases needs none. */
static bool index_paths(const sw_spec *spec, sw_map *paths)
{
    bool is_new = false;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (sw_map_put(paths, spec->params[i].path, spec->params[i].path_length, i, &is_new) == NULL)
            return false;
    }
    return true;
}

/* The weight beside a bias: the same path with another leaf ("x.bias"), or without the ending ("x_bias"). */
static const sw_facts *weight_beside(const sw_plan *plan, const sw_spec *spec, const sw_map *paths,
                                     const sw_spec_param *bias)
{
    static const char *const leaves[] = {"weight", "qweight", "weight_packed"};
    static const char *const endings[] = {"", "_blocks"};
    uint32_t stem = bias->path_length - (uint32_t)strlen("bias");
    bool is_ending = stem > 0 && bias->path[stem - 1] == '_';
    size_t n_leaves = is_ending ? SW_COUNT(endings) : SW_COUNT(leaves);
    char path[1024];

    for (size_t i = 0; i < n_leaves; i++) {
        int n = snprintf(path, sizeof path, "%.*s%s", (int)(stem - (is_ending ? 1 : 0)), bias->path,
                         is_ending ? endings[i] : leaves[i]);
        const uint32_t *at = n > 0 && (size_t)n < sizeof path ? sw_map_find(paths, path, (size_t)n) : NULL;
        if (at != NULL)
            return &plan->facts[spec->params[*at].facts];
    }
    return NULL;
}

static bool is_bias(const sw_spec_param *p)
{
    const uint32_t n = 4;

    if (p->path_length < n || memcmp(p->path + p->path_length - n, "bias", n) != 0)
        return false;
    return p->path_length == n || strchr("._", p->path[p->path_length - n - 1]) != NULL;
}

static void misplaced(sw_plan *plan, const sw_spec *spec, const sw_spec_param *p, const char *help,
                      const char *what)
{
    char fqn[1024];
    int n = snprintf(fqn, sizeof fqn, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                     (int)p->path_length, p->path);

    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "bias_placement", fqn,
                        n > 0 && (size_t)n < sizeof fqn ? (size_t)n : 0, help, "%s", what);
}

static bool same_cut(const sw_facts *bias, const sw_facts *weight)
{
    const sw_placement *b = &bias->places.on[SW_ON_TP];
    const sw_placement *w = &weight->places.on[SW_ON_TP];
    uint32_t dim = 0;

    if (b->kind != SW_PLACE_SHARD || !sw_placement_dim(b, bias->shape->n_dims, &dim) ||
        (int)dim != bias->out_dim)
        return false;
    sw_placement moved = *b;
    moved.dim = w->dim;
    return sw_placement_equal(&moved, w);
}

/* Biases of experts go where their experts go. */
static bool same_experts(const sw_facts *bias, const sw_facts *weight)
{
    const sw_placement *b = &bias->places.on[SW_ON_EP];
    const sw_placement *w = &weight->places.on[SW_ON_EP];
    const sw_shape *seen = weight->view != NULL ? weight->view : weight->shape;
    uint32_t b_dim = 0;
    uint32_t w_dim = 0;

    if (b->kind != SW_PLACE_SHARD || w->kind != SW_PLACE_SHARD)
        return b->kind == w->kind;
    return sw_placement_dim(b, bias->shape->n_dims, &b_dim) && sw_placement_dim(w, seen->n_dims, &w_dim) &&
           b_dim == w_dim;
}

static sw_status defer(sw_plan *plan, sw_spec *spec, sw_spec_param *p, sw_error *err)
{
    sw_facts facts = plan->facts[p->facts];
    uint32_t capacity = spec->n_deferred;
    char *path = sw_arena_copy(plan->arena, p->path, p->path_length);

    facts.is_deferred = true;
    facts.is_rank0_only = false;
    p->facts = sw_plan_intern_facts(plan, &facts);
    if (path == NULL || p->facts == UINT32_MAX ||
        !sw_plan_grow(plan->arena, (void **)&spec->deferred, &capacity, spec->n_deferred,
                      sizeof *spec->deferred))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the biases of %s", spec->fqn);
    spec->deferred[spec->n_deferred++] = path;
    return SW_OK;
}

static sw_status settle(sw_plan *plan, sw_spec *spec, const sw_map *paths, sw_spec_param *p, sw_error *err)
{
    const sw_facts *bias = &plan->facts[p->facts];
    const sw_facts *weight = weight_beside(plan, spec, paths, p);
    uint32_t dim = 0;

    if (weight == NULL || weight->shape == NULL)
        return SW_OK;
    if (!same_experts(bias, weight)) {
        misplaced(plan, spec, p, "give the bias its weight's placement over ep",
                  "the bias of an expert is not cut over ep as its weight is");
        return SW_OK;
    }
    if (weight->places.on[SW_ON_TP].kind != SW_PLACE_SHARD ||
        !sw_placement_dim(&weight->places.on[SW_ON_TP], weight->shape->n_dims, &dim))
        return SW_OK;
    if ((int)dim == weight->out_dim) {
        if (!same_cut(bias, weight))
            misplaced(plan, spec, p, "give the bias the placement of its weight's output dim",
                      "the bias of a column-parallel weight is not cut with it");
        return SW_OK;
    }
    uint32_t partial = sw_spec_partial_outputs(spec);
    if ((int)dim != weight->in_dim || partial == 0 || bias->is_rank0_only)
        return SW_OK;
    if (bias->places.on[SW_ON_TP].kind != SW_PLACE_REPLICATE) {
        misplaced(plan, spec, p, "declare the bias replicate over tp",
                  "the bias of a row-parallel weight must be whole: it is added once, after the reduction");
        return SW_OK;
    }
    if (partial > 1) {
        misplaced(plan, spec, p, "give the boundary a single partial output",
                  "a row bias needs a single-output exit, and several outputs are partial");
        return SW_OK;
    }
    return defer(plan, spec, p, err);
}

/*
 * A bias that an override leaves out of `params` is still added by the region: declare it whole beside a row
 * weight, so that it is deferred; beside a column weight it is a fault, which settle() names.
 */
static sw_status declare_missing(sw_plan *plan, sw_spec *spec, const sw_map *paths, uint32_t i, sw_error *err)
{
    const sw_spec_param *weight = &spec->params[i];
    const uint32_t leaf = (uint32_t)strlen("weight");
    char fqn[2048];

    if (weight->path_length < leaf ||
        memcmp(weight->path + weight->path_length - leaf, "weight", leaf) != 0 ||
        plan->facts[weight->facts].places.on[SW_ON_TP].kind != SW_PLACE_SHARD)
        return SW_OK;
    int n = snprintf(fqn, sizeof fqn, "%s%s%.*sbias", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                     (int)(weight->path_length - leaf), weight->path);
    uint32_t param =
        n > 0 && (size_t)n < sizeof fqn ? sw_model_find_param(plan->model, fqn, (size_t)n) : UINT32_MAX;
    if (param == UINT32_MAX)
        return SW_OK;
    const sw_tensor_entry *t = sw_model_tensor(plan->model, param);
    const char *path = sw_relative_path(spec, t->name);
    if (t->shape == NULL || sw_map_find(paths, path, strlen(path)) != NULL)
        return SW_OK;
    sw_facts facts;
    uint32_t fault = UINT32_MAX;
    sw_place_where where = {SW_BOUNDARY_WHOLE, false, true, false};
    sw_place_what what = {t->name,  t->name_length,    path, sw_class_of(plan, param),
                          t->shape, (sw_dtype)t->dtype};
    sw_place(plan, where, &what, &facts, &fault);
    uint32_t index = sw_plan_intern_facts(plan, &facts);
    if (index == UINT32_MAX)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the biases of %s", spec->fqn);
    return sw_spec_add_param(plan, spec, (sw_spec_param){path, (uint32_t)strlen(path), param, index}, err);
}

/* May an override have left a bias out? A plan from a file holds what it holds: coverage names the rest. */
static bool may_miss(const sw_plan *plan, const sw_spec *spec)
{
    return spec->n_overrides > 0 && plan->classes != NULL;
}

static sw_status settle_all(sw_plan *plan, sw_spec *spec, sw_map *paths, sw_error *err)
{
    uint32_t n_declared = spec->n_params;

    if (!index_paths(spec, paths))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the biases of %s", spec->fqn);
    for (uint32_t i = 0; i < n_declared && may_miss(plan, spec); i++)
        SW_TRY(declare_missing(plan, spec, paths, i, err));
    for (uint32_t i = 0; i < spec->n_params; i++) {
        if (is_bias(&spec->params[i]))
            SW_TRY(settle(plan, spec, paths, &spec->params[i], err));
    }
    return SW_OK;
}

/* Most boundaries have no bias: nothing is built for them. */
static bool has_work(const sw_plan *plan, const sw_spec *spec)
{
    bool found = may_miss(plan, spec);

    for (uint32_t i = 0; i < spec->n_params && !found; i++)
        found = is_bias(&spec->params[i]);
    return found;
}

sw_status sw_finish_biases(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs && (plan->tp > 1 || plan->ep > 1); i++) {
        sw_map paths = {0};
        sw_status status =
            has_work(plan, &plan->specs[i]) ? settle_all(plan, &plan->specs[i], &paths, err) : SW_OK;
        sw_map_clear(&paths);
        SW_TRY(status);
    }
    return SW_OK;
}
