/*
 * Embedding and head: both are cut along the vocabulary, so both must have its rows, in dim 0. A model that
 * takes images or sound may have tokens that it reads and never writes: its embedding may have more rows than
 * its head. Models with several embeddings or heads are left alone: names alone do not pair them.
 */
#include "plan/lint_vocabulary.h"

#include <inttypes.h>
#include <string.h>

#include "plan/classify.h"
#include "plan/companion.h"
#include "plan/fault.h"
#include "plan/heads.h"

static const char help[] = "check that config.json belongs to this checkpoint";

/* Is the vocabulary dim 0 of what is stored? Not that of GPTQ and AWQ words, nor of scales. */
static bool holds_rows(const sw_class *c)
{
    return !c->has_dim && (c->companion == NULL || (c->companion->is_weight && c->companion->out_dim == 0 &&
                                                    c->companion->out_factor == SW_FACTOR_ONE));
}

/* The text model's only matrix of a role, in no layer; NULL when there is none, or more than one. */
static const sw_tensor_entry *only_one(const sw_plan *plan, sw_role role)
{
    const sw_model *model = plan->model;
    const sw_tensor_entry *found = NULL;

    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        const sw_class *c = sw_class_of(plan, i);
        bool is_one = model->params[i].layer < 0 && c->role == role && !c->is_tower && holds_rows(c) &&
                      t->shape != NULL && t->shape->n_dims == 2;
        if (is_one && found != NULL)
            return NULL;
        found = is_one ? t : found;
    }
    return found;
}

static bool has_tower(const sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_classes; i++) {
        if (plan->classes[i].is_tower)
            return true;
    }
    return plan->model->config.has_text_config;
}

/* Stored [hidden, vocabulary]: a cut of dim 0 would be one of the features. A table says so by itself. */
static void check_side(sw_plan *plan, const sw_tensor_entry *t)
{
    uint64_t hidden = (uint64_t)sw_plan_attribute(plan, SW_ATTR_HIDDEN);
    uint64_t vocabulary = (uint64_t)sw_plan_attribute(plan, SW_ATTR_VOCAB);

    if (t != NULL && plan->model->family == NULL && hidden != 0 && hidden != vocabulary &&
        t->shape->dims[0] == hidden && t->shape->dims[1] == vocabulary) {
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "shape_mismatch", t->name, t->name_length,
                            "transpose it: the vocabulary is stored along dim 0",
                            "is [%" PRIu64 ", %" PRIu64 "], hidden_size by vocab_size: the other way round",
                            hidden, vocabulary);
    }
}

void sw_lint_vocabulary(sw_plan *plan)
{
    const sw_tensor_entry *embed = only_one(plan, SW_ROLE_EMBED);
    const sw_tensor_entry *head = only_one(plan, SW_ROLE_LM_HEAD);

    check_side(plan, embed);
    check_side(plan, head);
    if (embed == NULL || head == NULL || embed->shape->dims[0] == head->shape->dims[0])
        return;
    uint64_t in = embed->shape->dims[0];
    uint64_t out = head->shape->dims[0];
    bool may_be_meant = in > out && has_tower(plan);
    (void)sw_plan_fault(plan, may_be_meant ? SW_SEVERITY_WARNING : SW_SEVERITY_ERROR, "shape_mismatch",
                        head->name, head->name_length,
                        may_be_meant ? "nothing, if the model reads tokens that it never writes" : help,
                        "has %" PRIu64 " rows, and %s has %" PRIu64, out, embed->name, in);
}
