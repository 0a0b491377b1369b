/*
 * Classes of a model's patterns: role, side, form, layout, and where the answer came from. A family's row
 * says all of it; a rule of words says the role, and the rest follows from what such names mean everywhere
 * (class_words.c).
 */
#include "plan/classify.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "family/attributes.h"
#include "plan/class_words.h"
#include "plan/companion.h"
#include "plan/fault.h"
#include "plan/intern.h"
#include "plan/override_match.h"

static void class_from_row(sw_class *class_, const sw_family_row *row)
{
    class_->role = row->role;
    class_->side = row->side;
    class_->form = row->form;
    class_->layout = row->layout;
    class_->flags = row->flags;
    class_->parts = row->parts;
    class_->source = SW_RULE_FAMILY;
    class_->rule_text = row->name;
    class_->reason = (row->flags & SW_ROW_BUFFER) != 0 ? "buffer" : NULL;
}

/* Architecture rules of the override file for this model. */
static const sw_role_rules *arch_rules(const sw_model *model, const sw_overrides *overrides)
{
    for (uint32_t i = 0; overrides != NULL && i < overrides->n_arch_roles; i++) {
        const char *architecture = overrides->arch_roles[i].architecture;
        if (strcmp(architecture, model->architecture) == 0)
            return &overrides->arch_roles[i].rules;
    }
    return NULL;
}

typedef struct classifier {
    sw_plan *plan;
    const sw_overrides *overrides;
    const sw_role_rules *arch;
    char *lower;   /* room for the longest name, lower-cased */
    char *pattern; /* the same for a base name's pattern, or that of the weight beside a bias */
    sw_map by_pattern;
    sw_error *err;
} classifier;

static void lower_into(char *out, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    out[length] = '\0';
}

/* Patterns of an override file live as long as the overrides, which may be gone before the plan is. */
static const char *keep_text(const classifier *c, const char *text)
{
    const char *copy = sw_arena_format(c->plan->arena, "%s", text);

    c->plan->is_out_of_memory = c->plan->is_out_of_memory || copy == NULL;
    return copy;
}

static bool try_arch(const classifier *c, sw_class *class_)
{
    const char *pattern = NULL;
    int hit = sw_role_first_explicit(c->arch, c->lower, &pattern);

    if (hit < 0)
        return false;
    class_->role = c->arch->rules[hit].role;
    class_->source = SW_RULE_ARCH;
    class_->rule = (uint32_t)hit + 1;
    class_->rule_text = keep_text(c, pattern);
    return true;
}

static bool try_rules(const classifier *c, const sw_role_rules *rules, sw_rule_source source,
                      sw_class *class_)
{
    const char *pattern = NULL;
    int hit = sw_role_first_match(rules, c->lower, &pattern);

    if (hit < 0)
        return false;
    class_->role = rules->rules[hit].role;
    class_->source = source;
    class_->rule = (uint32_t)hit + 1;
    class_->rule_text = source == SW_RULE_USER ? keep_text(c, pattern) : pattern;
    return true;
}

/* Role of the base name in c->lower; `row` is the family's row for it. */
static void decide(const classifier *c, const sw_family_row *row, uint32_t n_dims, sw_class *class_)
{
    const sw_overrides *o = c->overrides;
    bool has_user = o != NULL && o->has_roles;

    if (try_arch(c, class_) || (has_user && try_rules(c, &o->roles, SW_RULE_USER, class_))) {
        sw_role role = class_->role;
        if (row != NULL && row->role == role) { /* the same role: the family still knows the storage */
            sw_class said = *class_;
            class_from_row(class_, row);
            class_->source = said.source;
            class_->rule = said.rule;
            class_->rule_text = said.rule_text;
        } else {
            sw_class_from_words(class_, role, c->lower, n_dims);
        }
        return;
    }
    if (row != NULL) {
        class_from_row(class_, row);
        return;
    }
    if ((!has_user || o->extends_roles) && try_rules(c, &sw_default_role_rules, SW_RULE_DEFAULT, class_))
        sw_class_from_words(class_, class_->role, c->lower, n_dims);
}

static sw_class classify_name(const classifier *c, const char *name, size_t length, const char *pattern,
                              size_t pattern_length, const sw_family_row *row, int32_t layer, uint32_t n_dims)
{
    const sw_model *model = c->plan->model;
    sw_class class_ = {0};
    size_t stem = 0;
    const sw_companion *companion = sw_companion_of(name, length, model->config.quantization.method, &stem);

    lower_into(c->lower, name, length);
    class_.is_tower = sw_tower_prefix(model->family, c->lower) > 0;
    if (companion != NULL && (row == NULL || !companion->is_weight)) {
        /* Classed by the weight it belongs to. */
        size_t pattern_stem = pattern_length - (length - stem);
        memcpy(c->lower + stem, ".weight", sizeof ".weight");
        memcpy(c->pattern, pattern, pattern_stem);
        memcpy(c->pattern + pattern_stem, ".weight", sizeof ".weight");
        int cut = 0;
        row = sw_family_match(model->family, c->pattern, pattern_stem + strlen(".weight"), &cut);
    }
    const sw_family_row *first = row;
    if (row != NULL)
        row = sw_family_row_for(model->family, row, &model->config.attributes, layer < 0 ? 0 : layer);
    decide(c, row, n_dims, &class_);
    class_.row = first;
    class_.companion = companion;
    class_.is_packed_orphan = companion == NULL && sw_companion_is_packed_name(name, length) && row == NULL;
    sw_class_by_common_names(&class_, c->lower);
    return class_;
}

static void clear_classifier(classifier *c)
{
    sw_map_clear(&c->by_pattern);
}

static sw_status index_patterns(classifier *c)
{
    const sw_model *model = c->plan->model;

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        bool is_new = false;
        if (sw_map_put(&c->by_pattern, p->text, p->length, i, &is_new) == NULL)
            return SW_FAIL(c->err, SW_E_NO_MEMORY, "", "no memory for the roles of %u patterns",
                           model->n_patterns);
    }
    return SW_OK;
}

/* The class of the weight beside a bias of this pattern, or NULL. */
static const sw_class *sibling_of(const classifier *c, const sw_pattern_node *bias)
{
    static const char *const leaves[] = {"weight", "qweight", "weight_packed"};
    size_t stem = bias->length - strlen("bias");

    memcpy(c->pattern, bias->text, stem);
    for (size_t k = 0; k < SW_COUNT(leaves); k++) {
        size_t n = strlen(leaves[k]);
        memcpy(c->pattern + stem, leaves[k], n);
        const uint32_t *at = sw_map_find(&c->by_pattern, c->pattern, stem + n);
        if (at != NULL)
            return &c->plan->classes[*at];
    }
    return NULL;
}

static bool is_row(const sw_class *c)
{
    return c->role == SW_ROLE_ROWWISE || c->side == SW_SIDE_IN;
}

static bool is_column(const sw_class *c)
{
    return c->role == SW_ROLE_COLWISE || c->role == SW_ROLE_LM_HEAD || c->role == SW_ROLE_FUSED_QKV ||
           c->role == SW_ROLE_FUSED_GATE_UP;
}

/* A default BIAS beside a column weight is cut with it: an output head's bias follows the vocabulary. */
static void settle_bias(const classifier *c, const sw_pattern_node *p, sw_class *class_)
{
    if (class_->role != SW_ROLE_BIAS || p->length < 5 || strcmp(p->text + p->length - 5, ".bias") != 0)
        return;
    const sw_class *weight = sibling_of(c, p);
    class_->is_row_bias = weight != NULL && is_row(weight);
    if (weight == NULL || !is_column(weight) || class_->source == SW_RULE_FAMILY)
        return;
    class_->role = weight->role;
    class_->layout = weight->layout;
    class_->parts = weight->parts;
    class_->form = weight->form;
}

/* Does a rule look at layer numbers, so that one class per pattern is not enough? */
static bool looks_at_numbers(const sw_role_rules *rules)
{
    for (size_t i = 0; rules != NULL && i < rules->n_rules; i++) {
        for (const char *const *p = rules->rules[i].patterns; *p != NULL; p++) {
            for (const char *at = *p; *at != '\0'; at++) {
                bool starts = at == *p || at[-1] == '.';
                size_t n = strspn(at, "0123456789");
                if (starts && n > 0 && (at[n] == '.' || at[n] == '\0'))
                    return true;
            }
        }
    }
    return false;
}

/* Has the family several rows of this name, chosen by the layer (Kimi-Linear: delta and latent attention)? */
static bool varies_by_layer(const sw_model *model, const sw_family_row *row)
{
    if (row == NULL)
        return false;
    for (const sw_family_block *block = model->family->blocks; *block != NULL; block++) {
        for (const sw_family_row *r = *block; r->name != NULL; r++) {
            if (r != row && strcmp(r->name, row->name) == 0 && r->when != NULL &&
                strstr(r->when, "layer") != NULL)
                return true;
        }
    }
    return false;
}

static uint32_t dims_of(const sw_tensor_entry *tensor)
{
    return tensor->shape == NULL ? 2 : tensor->shape->n_dims;
}

static sw_status classify_patterns(const classifier *c)
{
    sw_plan *plan = c->plan;
    const sw_model *model = plan->model;

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        const sw_tensor_entry *t = sw_model_tensor(model, p->first_param);
        plan->classes[i] = classify_name(c, t->name, t->name_length, p->text, p->length, p->row,
                                         model->params[p->first_param].layer, dims_of(t));
    }
    plan->n_classes = model->n_patterns;
    for (uint32_t i = 0; i < model->n_patterns; i++)
        settle_bias(c, &model->patterns[i], &plan->classes[i]);
    return SW_OK;
}

static bool same_class(const sw_class *a, const sw_class *b)
{
    return a->role == b->role && a->side == b->side && a->form == b->form && a->layout == b->layout &&
           a->flags == b->flags && a->parts == b->parts && a->source == b->source && a->rule == b->rule &&
           a->companion == b->companion && a->row == b->row;
}

/* Index of a class equal to `own` among the pattern's own and those of single names; n_classes when there is
 * none. */
static uint32_t find_class(const sw_plan *plan, uint32_t pattern, const sw_class *own)
{
    if (same_class(&plan->classes[pattern], own))
        return pattern;
    for (uint32_t i = plan->model->n_patterns; i < plan->n_classes; i++) {
        if (same_class(&plan->classes[i], own))
            return i;
    }
    return plan->n_classes;
}

/* Classes of single names, where a user's rule or the family's rows tell layers apart. */
static sw_status classify_each(const classifier *c, bool all)
{
    sw_plan *plan = c->plan;
    const sw_model *model = plan->model;
    uint32_t capacity = plan->n_classes;

    plan->class_of = sw_arena_zero(plan->arena, model->n_params + 1, sizeof *plan->class_of);
    if (plan->class_of == NULL)
        return SW_FAIL(c->err, SW_E_NO_MEMORY, "", "no memory for the roles of %zu parameters",
                       model->n_params);
    for (uint32_t i = 0; i < model->n_params; i++) {
        const sw_param_node *param = &model->params[i];
        const sw_pattern_node *p = &model->patterns[param->pattern];
        const sw_tensor_entry *t = sw_model_tensor(model, i);
        plan->class_of[i] = param->pattern;
        if (!all && !varies_by_layer(model, p->row))
            continue;
        sw_class own =
            classify_name(c, t->name, t->name_length, p->text, p->length, p->row, param->layer, dims_of(t));
        settle_bias(c, p, &own);
        uint32_t at = find_class(plan, param->pattern, &own);
        plan->override_steps += at < model->n_patterns ? 0 : at - model->n_patterns;
        SW_TRY(sw_override_steps_status(plan, c->err));
        if (at == plan->n_classes) {
            if (!sw_plan_grow(plan->arena, (void **)&plan->classes, &capacity, plan->n_classes, sizeof own))
                return SW_FAIL(c->err, SW_E_NO_MEMORY, "", "no memory for the roles of %zu parameters",
                               model->n_params);
            plan->classes[plan->n_classes++] = own;
        }
        plan->class_of[i] = at;
    }
    return SW_OK;
}

/* A user's rule that gave no parameter its role is a mistake more often than not. */
static void report_unused(sw_plan *plan, const sw_role_rules *rules, sw_rule_source source, const char *where)
{
    for (size_t i = 0; rules != NULL && i < rules->n_rules; i++) {
        bool used = false;
        for (uint32_t k = 0; k < plan->n_classes && !used; k++)
            used = plan->classes[k].source == source && plan->classes[k].rule == i + 1;
        if (used)
            continue;
        const char *pattern = rules->rules[i].patterns[0] == NULL ? "" : rules->rules[i].patterns[0];
        (void)sw_plan_fault(plan, plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING, "role_unused",
                            pattern, strlen(pattern), "check the pattern, its mode, and the rules before it",
                            "%s, rule %zu gave no parameter its role", where, i + 1);
    }
}

static uint64_t patterns_of(const sw_role_rules *rules)
{
    uint64_t n = 0;

    for (size_t i = 0; rules != NULL && i < rules->n_rules; i++) {
        for (const char *const *p = rules->rules[i].patterns; *p != NULL; p++)
            n++;
    }
    return n;
}

/* What the rules of an override file may cost: every pattern on every name. */
static sw_status count_rules(const classifier *c, bool by_number)
{
    const sw_model *model = c->plan->model;
    const sw_overrides *o = c->overrides;
    uint64_t n = patterns_of(c->arch) + (o != NULL && o->has_roles ? patterns_of(&o->roles) : 0);
    uint64_t steps = 0;

    for (uint32_t i = 0; i < model->n_patterns && n > 0; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        steps += (p->length / 16 + 1) * (by_number ? 1 + (uint64_t)p->n_params : 1);
    }
    c->plan->override_steps += n * steps;
    return sw_override_steps_status(c->plan, c->err);
}

sw_status sw_classify(sw_plan *plan, const sw_overrides *overrides, sw_error *err)
{
    const sw_model *model = plan->model;
    size_t longest = 0;

    for (uint32_t i = 0; i < model->list.n_tensors; i++)
        longest = model->list.tensors[i].name_length > longest ? model->list.tensors[i].name_length : longest;
    classifier c SW_AUTO(clear_classifier) = {.plan = plan, .overrides = overrides, .err = err};
    c.arch = arch_rules(model, overrides);
    c.lower = sw_arena_alloc(plan->arena, longest + sizeof ".weight_packed");
    c.pattern = sw_arena_alloc(plan->arena, longest + sizeof ".weight_packed");
    plan->classes = sw_arena_zero(plan->arena, model->n_patterns + 1, sizeof *plan->classes);
    if (c.lower == NULL || c.pattern == NULL || plan->classes == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the roles of %u patterns", model->n_patterns);
    bool by_number = looks_at_numbers(c.arch) ||
                     (overrides != NULL && overrides->has_roles && looks_at_numbers(&overrides->roles));
    SW_TRY(count_rules(&c, by_number));
    SW_TRY(index_patterns(&c));
    SW_TRY(classify_patterns(&c));
    bool by_layer = false;
    for (uint32_t i = 0; i < model->n_patterns && !by_layer; i++)
        by_layer = varies_by_layer(model, model->patterns[i].row);
    if (by_number || by_layer)
        SW_TRY(classify_each(&c, by_number));
    report_unused(plan, c.arch, SW_RULE_ARCH, "arch_roles");
    if (overrides != NULL && overrides->has_roles)
        report_unused(plan, &overrides->roles, SW_RULE_USER, "roles");
    return SW_OK;
}

const sw_class *sw_class_of(const sw_plan *plan, uint32_t param)
{
    uint32_t i = plan->class_of != NULL ? plan->class_of[param] : plan->model->params[param].pattern;
    return &plan->classes[i];
}

void sw_class_rule_text(const sw_plan *plan, const sw_class *class_, char *text, size_t capacity)
{
    const char *what = class_->rule_text == NULL ? "" : class_->rule_text;

    switch (class_->source) {
    case SW_RULE_ARCH:
        (void)snprintf(text, capacity, "arch_roles %s, rule %u: %s", plan->architecture, class_->rule, what);
        break;
    case SW_RULE_USER:
        (void)snprintf(text, capacity, "roles, rule %u: %s", class_->rule, what);
        break;
    case SW_RULE_FAMILY:
        (void)snprintf(text, capacity, "family %s: %s", plan->family, what);
        break;
    case SW_RULE_DEFAULT:
        if (class_->rule == 0)
            (void)snprintf(text, capacity, "default: %s", what);
        else
            (void)snprintf(text, capacity, "default rule %u: %s", class_->rule, what);
        break;
    default:
        (void)snprintf(text, capacity, "no rule");
        break;
    }
}
