/*
 * Where the family's table gives a shape in the words of the config, the stored shape must be that; layers
 * and experts must be as many as the config says. Cuts by heads come from the config's numbers, so a
 * contradiction would cut inside heads. Linear: each pattern is looked at again only when its shape changes.
 */
#include "plan/lint_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/complete.h"
#include "plan/classify.h"
#include "plan/companion.h"
#include "plan/fault.h"

static void shape_text(const uint64_t *dims, uint32_t n_dims, char *text, size_t capacity)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n_dims && used + 24 < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRIu64, i == 0 ? "" : ", ", dims[i]);
}

static bool same_dims(const sw_shape *shape, const uint64_t *dims, uint32_t n_dims, uint32_t from)
{
    return shape->n_dims == n_dims &&
           memcmp(shape->dims + from, dims + from, (n_dims - from) * sizeof *dims) == 0;
}

/* Is a matrix of this role cut along one of its two sides? */
static bool is_cut_matrix(sw_role role)
{
    switch (role) {
    case SW_ROLE_COLWISE:
    case SW_ROLE_ROWWISE:
    case SW_ROLE_FUSED_QKV:
    case SW_ROLE_FUSED_GATE_UP:
    case SW_ROLE_EMBED:
    case SW_ROLE_LM_HEAD:
    case SW_ROLE_MOE_EXPERT:
    case SW_ROLE_SHARED_EXPERT:
        return true;
    default:
        return false;
    }
}

/*
 * A difference that would put the cut on another side, or cut what is no matrix: other dims than the table's,
 * or the same two the other way round. Other sizes (a pruned width) are cut as they are.
 */
static bool is_another_form(const sw_class *class_, const sw_shape *stored, const uint64_t *dims,
                            uint32_t n_dims)
{
    if (class_->has_dim)
        return false; /* an override says how it is stored */
    if (!is_cut_matrix(class_->role) || n_dims < 2)
        return class_->role == SW_ROLE_MOE_GATE && n_dims > 0 && stored->dims[0] != dims[0];
    return stored->n_dims != n_dims ||
           (n_dims == 2 && stored->dims[0] == dims[1] && stored->dims[1] == dims[0]);
}

/* Two values of 4 bits in each byte, along the columns (NVFP4). */
static bool is_packed(const sw_tensor_entry *t, const uint64_t *dims, uint32_t n_dims)
{
    const uint64_t *stored = t->shape->dims;
    uint32_t last = n_dims - 1;

    return t->dtype == SW_DTYPE_U8 && n_dims >= 2 && t->shape->n_dims == n_dims &&
           memcmp(stored, dims, last * sizeof *dims) == 0 && dims[last] % 2 == 0 &&
           stored[last] == dims[last] / 2;
}

static void check_shape(sw_plan *plan, const sw_model *model, const sw_tensor_entry *t,
                        const sw_class *class_, const sw_family_row *row, int32_t layer)
{
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = 0;
    char stored[128];
    char said[128];

    if ((class_->flags & SW_ROW_BUFFER) != 0 ||
        !sw_row_shape(model->family, row, &model->config.attributes, layer, dims, &n_dims) ||
        same_dims(t->shape, dims, n_dims, 0) || is_packed(t, dims, n_dims) ||
        (t->shape->elems == 1 && n_dims == 0))
        return;
    shape_text(t->shape->dims, t->shape->n_dims, stored, sizeof stored);
    shape_text(dims, n_dims, said, sizeof said);
    bool is_padded = class_->layout == SW_LAYOUT_VOCAB && n_dims > 0 &&
                     same_dims(t->shape, dims, n_dims, 1) && t->shape->dims[0] > dims[0];
    (void)sw_plan_fault(
        plan, is_another_form(class_, t->shape, dims, n_dims) ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING,
        is_padded ? "vocab_padded" : "shape_mismatch", t->name, t->name_length,
        is_padded ? "rows beyond the vocabulary are cut and kept like the others"
                  : "check that config.json belongs to this checkpoint",
        "is [%s], config.json gives [%s]", stored, said);
}

static void check_counts(sw_plan *plan, const sw_model *model, const sw_tensor_entry *t,
                         const sw_class *class_, const sw_param_node *param)
{
    const sw_attributes *a = &model->config.attributes;
    int64_t layers = a->is_set[SW_ATTR_LAYERS] ? a->value[SW_ATTR_LAYERS] : INT64_MAX;
    int64_t beside = a->is_set[SW_ATTR_NEXTN_LAYERS] ? a->value[SW_ATTR_NEXTN_LAYERS] : 0;
    int64_t experts = a->is_set[SW_ATTR_EXPERTS] ? a->value[SW_ATTR_EXPERTS] : INT64_MAX;

    if (class_->source != SW_RULE_FAMILY || class_->is_tower)
        return;
    if (layers != INT64_MAX && param->layer >= layers + beside)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "layer_count", t->name, t->name_length,
                            "check that config.json belongs to this checkpoint",
                            "is in layer %d, config.json says %" PRId64 " layers", param->layer, layers);
    if (class_->role == SW_ROLE_MOE_EXPERT && param->expert >= 0 && param->expert >= experts)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "expert_count", t->name, t->name_length,
                            "check that config.json belongs to this checkpoint",
                            "is expert %d, config.json says %" PRId64 " experts", param->expert, experts);
}

sw_status sw_lint_config(sw_plan *plan, const sw_model *model, sw_error *err)
{
    if (plan->model != model || model->family == NULL)
        return SW_OK; /* without a table nothing is known of the shapes */
    const sw_shape **seen = sw_alloc_zero(model->n_patterns + 1, sizeof(void *));
    if (seen == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints");
    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_param_node *param = &model->params[i];
        const sw_pattern_node *pattern = &model->patterns[param->pattern];
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        const sw_class *class_ = sw_class_of(plan, i);
        check_counts(plan, model, t, class_, param);
        if (pattern->row == NULL || t->shape == NULL || t->shape == seen[param->pattern] ||
            (class_->companion != NULL && sw_companion_fits(class_->companion, t->dtype)))
            continue;
        seen[param->pattern] = t->shape;
        check_shape(plan, model, t, class_, pattern->row, param->layer);
    }
    sw_free(seen);
    return SW_OK;
}
