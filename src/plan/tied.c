/*
 * Tied embedding and head: one stored tensor, two uses. The file decides first (a name that is not there
 * cannot be stored), then the config, then the family's default, or that of all configs. The name that is not
 * stored keeps its boundary: its input is gathered and its logits leave as the contract says, whatever holds
 * the weight. Copies that a family stores beside them (MTP layers) are tied to them too.
 */
#include "plan/finish.h"

#include <string.h>

#include "base/status.h"
#include "model/tied_name.h"
#include "plan/classify.h"
#include "plan/derive.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/own_role.h"
#include "plan/template.h"

static const sw_attributes *attributes(const sw_plan *plan)
{
    return &plan->model->config.attributes;
}

static bool is_tied(const sw_plan *plan)
{
    const sw_attributes *a = attributes(plan);
    return a->is_set[SW_ATTR_TIED] && a->value[SW_ATTR_TIED] != 0;
}

/* The text model's own boundary of a type: not in a tower and not in a layer (an MTP layer has its own). */
static sw_spec *find_main(const sw_plan *plan, sw_boundary_type type)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        sw_spec *s = &plan->specs[i];
        if (s->type == type && !s->is_tower && s->layer < 0)
            return s;
    }
    return NULL;
}

static const char *missing_name(sw_plan *plan, sw_role role, const sw_spec *present)
{
    return sw_tied_name(plan->arena, plan->model->family, role, present->fqn, present->fqn_length);
}

static sw_status add_alias(sw_plan *plan, const char *weight, sw_boundary_type type, sw_error *err)
{
    uint32_t length = (uint32_t)(strlen(weight) - strlen(".weight"));
    sw_spec *spec = NULL;
    bool is_new = false;

    SW_TRY(sw_plan_spec_at(plan, weight, length, &spec, &is_new, err));
    if (!is_new)
        return SW_OK;
    spec->type = type;
    spec->is_tied_alias = true;
    return sw_template_contract_of(plan, sw_template_of(type), plan->sequence_parallel, spec, err);
}

static const char *weight_of(sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        sw_role role = plan->facts[spec->params[i].facts].role;
        if ((role == SW_ROLE_EMBED || role == SW_ROLE_LM_HEAD) &&
            plan->facts[spec->params[i].facts].shape->n_dims == 2)
            return sw_arena_format(plan->arena, "%s%s%.*s", spec->fqn, spec->fqn_length == 0 ? "" : ".",
                                   (int)spec->params[i].path_length, spec->params[i].path);
    }
    return NULL;
}

static sw_status pair(sw_plan *plan, const char *first, const char *second, sw_error *err)
{
    uint32_t capacity = plan->n_tied;

    if (first == NULL || second == NULL)
        return SW_OK;
    if (!sw_plan_grow(plan->arena, (void **)&plan->tied, &capacity, plan->n_tied, sizeof *plan->tied))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a tied pair");
    plan->tied[plan->n_tied++] = (sw_tied_pair){first, second};
    return SW_OK;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text);
    size_t k = strlen(ending);
    return n >= k && strcmp(text + n - k, ending) == 0;
}

/* A class without a language head ties nothing, whatever its config says. */
bool sw_has_language_head(const sw_plan *plan)
{
    static const char *const headless[] = {"ForSequenceClassification", "ForTokenClassification",
                                           "ForQuestionAnswering", "Model"};
    const char *name = plan->model->config.architecture == NULL ? "" : plan->model->config.architecture;

    for (size_t i = 0; i < SW_COUNT(headless); i++) {
        if (ends_with(name, headless[i]) && !ends_with(name, "LMHeadModel"))
            return false;
    }
    return true;
}

/*
 * A language model that no table knows, without a head and without a word about it: the base class of all
 * configs ties unless it is told not to.
 */
static bool assumes_tied(sw_plan *plan, const sw_spec *embed, const sw_spec *head)
{
    const sw_config *config = &plan->model->config;

    if (plan->model->family != NULL || config->attributes.is_stated[SW_ATTR_TIED] || embed == NULL ||
        head != NULL || config->architecture == NULL || !ends_with(config->architecture, "ForCausalLM"))
        return false;
    (void)sw_plan_fault(plan, SW_SEVERITY_NOTE, "tied_assumed", embed->fqn, embed->fqn_length,
                        "nothing, or say tie_word_embeddings in config.json",
                        "no head is stored and the config has no tie_word_embeddings: it is tied by default");
    return true;
}

/* A rule that takes the only tensor of a tied pair for something else leaves nothing to tie. */
static void complain_of_lost_pair(sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->model->n_params; i++) {
        const sw_tensor_entry *t = sw_model_tensor(plan->model, i);
        const sw_class *c = sw_class_of(plan, i);
        sw_role own = sw_own_of(plan->model, i).role;
        if ((c->source != SW_RULE_USER && c->source != SW_RULE_ARCH) || plan->model->params[i].layer >= 0 ||
            (own != SW_ROLE_EMBED && own != SW_ROLE_LM_HEAD))
            continue;
        (void)sw_plan_fault(plan, SW_SEVERITY_ERROR, "tied_conflict", t->name, t->name_length,
                            "leave its role; to hold it whole give it `params: {weight: {tp: replicate}}`, "
                            "and let out_src of the embedding and of the head be replicate",
                            "it is %s and tied to the %s, and a rule gives it the role %s: the pair is lost",
                            own == SW_ROLE_EMBED ? "the embedding" : "the head",
                            own == SW_ROLE_EMBED ? "head" : "embedding", sw_role_name(c->role));
        return;
    }
}

/* A head whose bias is stored, and its weight under the name of the embedding. */
static bool has_bias_alone(const sw_spec *head)
{
    static const char leaf[] = "bias";

    return head != NULL && head->n_params == 1 && head->params[0].path_length == strlen(leaf) &&
           memcmp(head->params[0].path, leaf, strlen(leaf)) == 0;
}

static sw_status tie_ends(sw_plan *plan, sw_error *err)
{
    sw_spec *embed = find_main(plan, SW_BOUNDARY_EMBED);
    sw_spec *head = find_main(plan, SW_BOUNDARY_LM_HEAD);

    if (is_tied(plan) && embed == NULL && head == NULL && sw_has_language_head(plan))
        complain_of_lost_pair(plan);
    if ((!is_tied(plan) && !assumes_tied(plan, embed, head)) || (embed == NULL && head == NULL) ||
        (head == NULL && !sw_has_language_head(plan)))
        return SW_OK;
    const char *embed_weight =
        embed != NULL ? weight_of(plan, embed) : missing_name(plan, SW_ROLE_EMBED, head);
    const char *head_weight =
        head != NULL ? weight_of(plan, head) : missing_name(plan, SW_ROLE_LM_HEAD, embed);
    if (has_bias_alone(head) && embed_weight != NULL) {
        head_weight = sw_arena_format(plan->arena, "%.*s.weight", (int)head->fqn_length, head->fqn);
        head->is_tied_alias = head_weight != NULL;
    }
    if (embed_weight == NULL || head_weight == NULL)
        return SW_OK;
    if (embed == NULL) {
        SW_TRY(add_alias(plan, embed_weight, SW_BOUNDARY_EMBED, err));
        return pair(plan, head_weight, embed_weight, err);
    }
    if (head == NULL)
        SW_TRY(add_alias(plan, head_weight, SW_BOUNDARY_LM_HEAD, err));
    return pair(plan, embed_weight, head_weight, err);
}

static bool is_copy(const sw_plan *plan, const sw_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_params; i++) {
        if ((plan->facts[spec->params[i].facts].flags & SW_ROW_COPY) != 0)
            return true;
    }
    return false;
}

/* What the family stores once more is tied to the model's own, whatever name stores that. */
static sw_status tie_copies(sw_plan *plan, sw_error *err)
{
    for (uint32_t i = 0; i < plan->n_specs; i++) {
        const sw_spec *copy = &plan->specs[i];
        const sw_spec *own = is_copy(plan, copy) ? find_main(plan, copy->type) : NULL;
        if (own == NULL)
            continue;
        const char *stored = own->is_tied_alias ? plan->tied[0].first : weight_of(plan, own);
        SW_TRY(pair(plan, stored, weight_of(plan, copy), err));
    }
    return SW_OK;
}

sw_status sw_finish_tied(sw_plan *plan, sw_error *err)
{
    SW_TRY(tie_ends(plan, err));
    return tie_copies(plan, err);
}
