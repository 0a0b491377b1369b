/*
 * Attention and feed-forward of a layer: their column weights take the same tokens, so they have one input
 * width, and what the row weight gives is added to the residual stream. Stored shapes tell, with a table or
 * without. What stands behind a latent inside the region (MLA), or is said by a table to take another width,
 * has a width of its own; so have keys and values of a cross-attention.
 */
#include "plan/lint_widths.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "model/complete.h"
#include "plan/fault.h"
#include "plan/heads.h"

static const char help[] = "check that all files are of one checkpoint";

static bool is_region(const sw_spec *spec)
{
    return (spec->type == SW_BOUNDARY_ATTENTION || spec->type == SW_BOUNDARY_MLP) && !spec->is_tower &&
           spec->layer >= 0 && !spec->has_fault && spec->local_compute == NULL;
}

static bool is_column(sw_role role)
{
    return role == SW_ROLE_COLWISE || role == SW_ROLE_FUSED_QKV || role == SW_ROLE_FUSED_GATE_UP;
}

static bool is_bias(const sw_spec_param *p)
{
    return p->path_length >= 4 && memcmp(p->path + p->path_length - 4, "bias", 4) == 0;
}

/* A matrix as the mathematics has it: no vector, nothing packed. */
static bool is_plain_matrix(const sw_plan *plan, const sw_spec_param *p)
{
    const sw_facts *f = &plan->facts[p->facts];

    return f->shape != NULL && f->shape->n_dims == 2 && f->view == NULL && f->reason == NULL &&
           f->in_dim >= 0 && f->out_dim >= 0 && !is_bias(p);
}

/* Does the family's table say that this side has another width than the stream? */
static bool has_own_width(const sw_plan *plan, const sw_spec_param *p, int dim)
{
    const sw_model *model = plan->model;
    uint64_t hidden = (uint64_t)sw_plan_attribute(plan, SW_ATTR_HIDDEN);
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n = 0;

    if (model->family == NULL || p->param == UINT32_MAX)
        return false;
    const sw_param_node *node = &model->params[p->param];
    const sw_family_row *row = model->patterns[node->pattern].row;
    return row != NULL &&
           sw_row_shape(model->family, row, &model->config.attributes, node->layer, dims, &n) && n == 2 &&
           dims[dim] != hidden;
}

/* Is there a latent of this width in the region: a norm over it, or a whole matrix that gives it? */
static bool has_latent(const sw_plan *plan, const sw_spec *spec, uint64_t width)
{
    if (width == (uint64_t)sw_plan_attribute(plan, SW_ATTR_HIDDEN))
        return false;
    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_facts *f = &plan->facts[spec->params[i].facts];
        if (f->role == SW_ROLE_NORM && f->shape != NULL && f->shape->elems == width)
            return true;
        if (f->role == SW_ROLE_REPLICATED && is_plain_matrix(plan, &spec->params[i]) &&
            f->shape->dims[f->out_dim] == width)
            return true;
    }
    return false;
}

static bool is_cross_attention(const sw_spec *spec)
{
    static const char *const words[] = {"cross", "Cross", "encoder_attn", "EncDec"};

    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (strstr(spec->fqn, words[i]) != NULL)
            return true;
    }
    return false;
}

/* Does the weight take what the region takes? */
static bool takes_the_stream(const sw_plan *plan, const sw_spec *spec, const sw_spec_param *p)
{
    const sw_facts *f = &plan->facts[p->facts];
    bool is_key = f->layout == SW_LAYOUT_KV_HEADS || f->layout == SW_LAYOUT_KV_STACKED;

    return is_column(f->role) && is_plain_matrix(plan, p) && !has_own_width(plan, p, f->in_dim) &&
           !has_latent(plan, spec, f->shape->dims[f->in_dim]) && !(is_key && is_cross_attention(spec));
}

static bool is_output(const sw_plan *plan, const sw_spec_param *p)
{
    const sw_facts *f = &plan->facts[p->facts];
    return f->role == SW_ROLE_ROWWISE && is_plain_matrix(plan, p) && !has_own_width(plan, p, f->out_dim);
}

/* Nothing stored: such a weight meets any other, and computes nothing. */
static bool complain_if_empty(sw_plan *plan, const sw_spec *spec, const sw_spec_param *p)
{
    const sw_facts *f = &plan->facts[p->facts];
    bool is_empty = (is_column(f->role) || f->role == SW_ROLE_ROWWISE) && is_plain_matrix(plan, p) &&
                    f->shape->elems == 0;

    if (is_empty)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "extents_disagree", spec->fqn, spec->fqn_length, help,
                            "'%.*s' is [%" PRIu64 ", %" PRIu64 "]: it has no elements", (int)p->path_length,
                            p->path, f->shape->dims[0], f->shape->dims[1]);
    return is_empty;
}

static void check_outputs(sw_plan *plan, const sw_spec *spec, const sw_spec_param *column, uint64_t in)
{
    uint64_t hidden = (uint64_t)sw_plan_attribute(plan, SW_ATTR_HIDDEN);

    for (uint32_t i = 0; i < spec->n_params && hidden != 0; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        uint64_t out = is_output(plan, p) ? f->shape->dims[f->out_dim] : in;
        if (out == in || out == hidden)
            continue;
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "extents_disagree", spec->fqn, spec->fqn_length, help,
                            "'%.*s' takes a width of %" PRIu64 ", and '%.*s' gives %" PRIu64
                            ": it cannot be added to the residual stream",
                            (int)column->path_length, column->path, in, (int)p->path_length, p->path, out);
        return;
    }
}

void sw_lint_widths(sw_plan *plan, const sw_spec *spec)
{
    const sw_spec_param *first = NULL;
    uint64_t width = 0;

    for (uint32_t i = 0; i < spec->n_params && is_region(spec); i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        if (complain_if_empty(plan, spec, p))
            return;
        if (!takes_the_stream(plan, spec, p))
            continue;
        uint64_t extent = f->shape->dims[f->in_dim];
        if (first == NULL) {
            first = p;
            width = extent;
        }
        if (extent == width)
            continue;
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "extents_disagree", spec->fqn, spec->fqn_length, help,
                            "'%.*s' and '%.*s' take the same tokens, but one has a width of %" PRIu64
                            " and the other %" PRIu64,
                            (int)first->path_length, first->path, (int)p->path_length, p->path, width,
                            extent);
        return;
    }
    if (first != NULL)
        check_outputs(plan, spec, first, width);
}
