/*
 * Before deriving: remarks on the files, names that carry another prefix than the family's table, a config of
 * another family, adapters. The last two end the plan here: everything after them would be a consequence.
 */
#include "plan/preflight.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "plan/class_words.h"
#include "plan/classify.h"
#include "plan/fault.h"
#include "plan/role.h"

static void note_remarks(sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->model->n_remarks; i++) {
        const sw_finding *r = &plan->model->remarks[i];
        (void)sw_plan_fault(plan, r->severity, r->code, r->fqn, strlen(r->fqn), r->help, "%s", r->what);
    }
}

/* What a model with a head puts before the names of its base model, whose names some tables have. */
static bool is_base_model(const sw_pattern_node *p)
{
    static const char *const prefixes[] = {"transformer.", "model."};

    for (size_t i = 0; i < SW_COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (p->prefix_cut == (int32_t)n && memcmp(p->text, prefixes[i], n) == 0 &&
            strncmp(p->row->name, prefixes[i], n) != 0)
            return true;
    }
    return false;
}

/* A checkpoint whose names carry another prefix than the family's table is planned, and told so. */
static void note_prefix(sw_plan *plan)
{
    const sw_model *model = plan->model;
    const sw_pattern_node *first = NULL;
    uint64_t n_shifted = 0;

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        if (p->row == NULL || p->prefix_cut == 0)
            continue;
        n_shifted += p->n_params;
        first = first == NULL ? p : first;
    }
    if (first == NULL)
        return;
    bool is_longer = first->prefix_cut > 0;
    /* A decoder inside a larger model has the larger model's prefix: worth a note only. */
    bool is_usual = model->config.has_text_config || is_base_model(first);
    (void)sw_plan_fault(plan, is_usual ? SW_SEVERITY_NOTE : SW_SEVERITY_WARNING, "name_prefix", "", 0,
                        "nothing, if the prefix is meant", "%" PRIu64 " parameter names %s '%.*s'%s",
                        n_shifted, is_longer ? "begin with" : "lack the prefix",
                        is_longer ? first->prefix_cut : -first->prefix_cut,
                        is_longer ? first->text : first->row->name,
                        is_longer ? ", which the family's table does not have" : " of the family's table");
}

/* Matrices in the layers of a tower that no table and no word knows (a fused `qkv`) are kept whole: said
 * once. */
static void note_towers(sw_plan *plan)
{
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_patterns && plan->tp > 1; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        const sw_class *c = sw_class_of(plan, p->first_param);
        const sw_tensor_entry *t = sw_model_tensor(model, p->first_param);
        bool is_matrix =
            t->shape != NULL && t->shape->n_dims == 2 && model->params[p->first_param].layer >= 0;
        if (!c->is_tower || c->source != SW_RULE_DEFAULT || c->role != SW_ROLE_REPLICATED || !is_matrix)
            continue;
        (void)sw_plan_fault(
            plan, SW_SEVERITY_WARNING, "tower_replicated", p->text, sw_tower_prefix(model->family, p->text),
            "give their roles and layouts in an override to cut them",
            "no table says how matrices of the tower are stored: every rank holds them whole");
    }
}

/* A name of the family's table, or a companion that goes by its weight's row. */
static bool is_known(const sw_plan *plan, const sw_pattern_node *p)
{
    return p->row != NULL || sw_class_of(plan, p->first_param)->source == SW_RULE_FAMILY;
}

static bool belongs_to_family(sw_plan *plan)
{
    const sw_model *model = plan->model;

    if (model->family == NULL)
        return true;
    for (uint32_t i = 0; i < model->n_patterns; i++) {
        if (is_known(plan, &model->patterns[i]))
            return true;
    }
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "family_mismatch", "", 0,
                        "check that config.json belongs to this checkpoint",
                        "matched 0 of %zu names with family %s; the first is %s", model->n_params,
                        model->family->name, sw_model_tensor(model, 0)->name);
    return true; /* the names may still be known by word: what is not is reported too */
}

static bool is_adapter(const sw_pattern_node *p)
{
    static const char *const words[] = {"lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B",
                                        "lora_magnitude_vector"};

    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (sw_role_pattern_matches(p->text, words[i], SW_MATCH_EXACT))
            return true;
    }
    return false;
}

static bool is_without_adapters(sw_plan *plan)
{
    const sw_model *model = plan->model;
    const sw_pattern_node *first = NULL;
    uint64_t n = 0;

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        if (!is_adapter(&model->patterns[i]))
            continue;
        n += model->patterns[i].n_params;
        first = first == NULL ? &model->patterns[i] : first;
    }
    if (first == NULL)
        return true;
    (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "adapters", first->text, first->length,
                        "merge the adapter into the model first",
                        "%" PRIu64 " tensors of LoRA adapters: adapters are not planned yet", n);
    return false;
}

/* bitsandbytes keeps a matrix as one run of bytes: no cut of it dequantises alone. */
static bool is_dequantised(sw_plan *plan)
{
    static const char *const words[] = {"absmax", "quant_map", "quant_state", "SCB"};
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        for (size_t k = 0; k < SW_COUNT(words); k++) {
            if (!sw_role_pattern_matches(p->text, words[k], SW_MATCH_EXACT))
                continue;
            (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "quant_unknown", p->text, p->length,
                                "dequantise it first", "packed by bitsandbytes, which cannot be cut");
            return false;
        }
    }
    return true;
}

bool sw_preflight(sw_plan *plan)
{
    note_remarks(plan);
    note_prefix(plan);
    note_towers(plan);
    return belongs_to_family(plan) && is_without_adapters(plan) && is_dequantised(plan);
}
