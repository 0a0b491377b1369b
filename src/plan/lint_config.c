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
#include "plan/classify.h"
#include "plan/fault.h"

static void shape_text(const uint64_t *dims, uint32_t n_dims, char *text, size_t capacity)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n_dims && used + 24 < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRIu64, i == 0 ? "" : ", ", dims[i]);
}

/* The shape that the row gives on this config; false when a number is missing. */
static bool expected_shape(const sw_model *model, const sw_family_row *row, int32_t layer, uint64_t *dims,
                           uint32_t *n_dims)
{
    const sw_attributes *attributes = &model->config.attributes;
    int64_t values[SW_MAX_DIMS];
    int64_t at = layer < 0 ? 0 : layer;

    row = sw_family_row_for(model->family, row, attributes, at);
    if (sw_expression_list(row->shape, attributes, at, values, SW_MAX_DIMS, n_dims, NULL) != SW_OK)
        return false;
    for (uint32_t i = 0; i < *n_dims; i++) {
        if (values[i] < 0)
            return false;
        dims[i] = (uint64_t)values[i];
    }
    return true;
}

static bool same_dims(const sw_shape *shape, const uint64_t *dims, uint32_t n_dims, uint32_t from)
{
    return shape->n_dims == n_dims &&
           memcmp(shape->dims + from, dims + from, (n_dims - from) * sizeof *dims) == 0;
}

static void check_shape(sw_plan *plan, const sw_model *model, const sw_tensor_entry *t,
                        const sw_class *class_, const sw_family_row *row, int32_t layer)
{
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = 0;
    char stored[128];
    char said[128];

    if ((class_->flags & SW_ROW_BUFFER) != 0 || !expected_shape(model, row, layer, dims, &n_dims) ||
        same_dims(t->shape, dims, n_dims, 0) || (t->shape->elems == 1 && n_dims == 0))
        return;
    shape_text(t->shape->dims, t->shape->n_dims, stored, sizeof stored);
    shape_text(dims, n_dims, said, sizeof said);
    bool is_padded = class_->layout == SW_LAYOUT_VOCAB && n_dims > 0 &&
                     same_dims(t->shape, dims, n_dims, 1) && t->shape->dims[0] > dims[0];
    bool is_count = class_->role == SW_ROLE_MOE_GATE && n_dims > 0 && t->shape->dims[0] != dims[0];
    (void)sw_plan_fault(plan, is_count ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING,
                        is_padded ? "vocab_padded" : "shape_mismatch", t->name, t->name_length,
                        is_padded ? "rows beyond the vocabulary are cut and kept like the others"
                                  : "check that config.json belongs to this checkpoint",
                        "is [%s], config.json gives [%s]", stored, said);
}

/* The first projection of a boundary that is cut by these heads: its rows, and the rows that the config
 * gives. */
static bool find_rows(const sw_plan *plan, const sw_spec *spec, sw_layout layout, const char **name,
                      uint64_t *stored, uint64_t *said)
{
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < spec->n_params; i++) {
        const sw_spec_param *p = &spec->params[i];
        const sw_facts *f = &plan->facts[p->facts];
        uint64_t dims[SW_MAX_DIMS];
        uint32_t n_dims = 0;
        if (p->param == UINT32_MAX || f->role != SW_ROLE_COLWISE || f->layout != layout ||
            f->shape->n_dims != 2 || f->reason != NULL)
            continue;
        const sw_param_node *node = &model->params[p->param];
        const sw_family_row *row = model->patterns[node->pattern].row;
        if (row == NULL || !expected_shape(model, row, node->layer, dims, &n_dims) || n_dims != 2)
            continue;
        *name = sw_model_tensor(model, p->param)->name;
        *stored = f->shape->dims[0];
        *said = dims[0];
        return true;
    }
    return false;
}

/* Keys must have as many rows for each of theirs as queries: else the config's head counts are not the
 * file's. */
static void check_heads(sw_plan *plan, const sw_spec *spec)
{
    const char *q_name = "";
    const char *k_name = "";
    uint64_t q[2];
    uint64_t k[2];

    if (spec->type != SW_BOUNDARY_ATTENTION ||
        !find_rows(plan, spec, SW_LAYOUT_HEADS, &q_name, &q[0], &q[1]) ||
        !find_rows(plan, spec, SW_LAYOUT_KV_HEADS, &k_name, &k[0], &k[1]))
        return;
    if (q[1] != 0 && k[1] != 0 && q[0] * k[1] != k[0] * q[1]) {
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_mismatch", k_name, strlen(k_name),
                            "check num_attention_heads and num_key_value_heads in config.json",
                            "has %" PRIu64 " rows beside %" PRIu64
                            " of queries; config.json's head counts make it "
                            "%" PRIu64 " beside %" PRIu64,
                            k[0], q[0], k[1], q[1]);
    }
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

/* Rows of the text model's own tensor of a role; 0 when there is none. */
static uint64_t rows_of(const sw_plan *plan, sw_role role, const char **name)
{
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        if (model->params[i].layer < 0 && sw_class_of(plan, i)->role == role && t->shape != NULL &&
            t->shape->n_dims == 2) {
            *name = t->name;
            return t->shape->dims[0];
        }
    }
    return 0;
}

static void check_vocabulary(sw_plan *plan)
{
    const char *embed = "";
    const char *head = "";
    uint64_t in = rows_of(plan, SW_ROLE_EMBED, &embed);
    uint64_t out = rows_of(plan, SW_ROLE_LM_HEAD, &head);

    if (in != 0 && out != 0 && in != out)
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_mismatch", head, strlen(head),
                            "check that config.json belongs to this checkpoint",
                            "has %" PRIu64 " rows, and %s has %" PRIu64, out, embed, in);
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
            class_->companion != NULL)
            continue;
        seen[param->pattern] = t->shape;
        check_shape(plan, model, t, class_, pattern->row, param->layer);
    }
    sw_free(seen);
    for (uint32_t i = 0; i < plan->n_specs; i++)
        check_heads(plan, &plan->specs[i]);
    check_vocabulary(plan);
    return SW_OK;
}
