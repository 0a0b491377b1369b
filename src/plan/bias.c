/*
 * Biases under tp. A bias of a row weight is whole and must enter the sum once: after the boundary's exit
 * (deferred), or on rank 0 only where the region weights it before the exit (experts). A bias of a column
 * weight is cut as its weight is. Both are checked on the final plan, so that an override or a loaded file is
 * held to the same.
 */
#include "plan/finish.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "plan/fault.h"
#include "plan/intern.h"

uint32_t sw_spec_partial_outputs(const sw_spec *spec)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->out_src.n; i++)
        n += spec->out_src.entries[i].places.on[SW_ON_TP].kind == SW_PLACE_PARTIAL;
    return n;
}

/* The weight beside a bias: the same path with another leaf ("x.bias"), or without the ending ("x_bias"). */
static const sw_facts *weight_beside(const sw_plan *plan, const sw_spec *spec, const sw_spec_param *bias)
{
    static const char *const leaves[] = {"weight", "qweight", "weight_packed", "", "_blocks"};
    uint32_t stem = bias->path_length - (uint32_t)strlen("bias");

    stem -= stem > 0 && bias->path[stem - 1] == '_';

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        for (size_t k = 0; k < SW_COUNT(leaves); k++) {
            size_t n = strlen(leaves[k]);
            if (p->path_length == stem + n && memcmp(p->path, bias->path, stem) == 0 &&
                memcmp(p->path + stem, leaves[k], n) == 0)
                return &plan->facts[p->facts];
        }
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

static bool same_cut(const sw_plan *plan, const sw_facts *bias, const sw_facts *weight)
{
    const sw_placement *b = &bias->places.on[SW_ON_TP];
    const sw_placement *w = &weight->places.on[SW_ON_TP];
    uint32_t dim = 0;

    (void)plan;
    if (b->kind != SW_PLACE_SHARD || !sw_placement_dim(b, bias->shape->n_dims, &dim) ||
        (int)dim != bias->out_dim)
        return false;
    sw_placement moved = *b;
    moved.dim = w->dim;
    return sw_placement_equal(&moved, w);
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

static sw_status settle(sw_plan *plan, sw_spec *spec, sw_spec_param *p, sw_error *err)
{
    const sw_facts *bias = &plan->facts[p->facts];
    const sw_facts *weight = weight_beside(plan, spec, p);
    uint32_t dim = 0;

    if (weight == NULL || weight->shape == NULL || weight->places.on[SW_ON_TP].kind != SW_PLACE_SHARD ||
        !sw_placement_dim(&weight->places.on[SW_ON_TP], weight->shape->n_dims, &dim))
        return SW_OK;
    if ((int)dim == weight->out_dim) {
        if (!same_cut(plan, bias, weight))
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

sw_status sw_finish_biases(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs && plan->tp > 1; i++) {
        sw_spec *spec = &plan->specs[i];
        for (uint32_t k = 0; k < spec->n_params; k++) {
            if (is_bias(&spec->params[k]))
                SW_TRY(settle(plan, spec, &spec->params[k], err));
        }
    }
    return SW_OK;
}
