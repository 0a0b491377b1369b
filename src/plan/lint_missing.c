/*
 * What a checkpoint lacks. Every row of the family's table that its config asks for is counted over layers
 * and experts, and so are the names in the files that the row stands for; one finding says where they differ.
 * A layer, or a whole component (a tower, a multi-token head), that is not there at all is one matter, not
 * one a row. Linear in the names: rows are compared by their counts, and only a row that lacks some is
 * walked.
 */
#include "plan/lint_missing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/classify.h"
#include "plan/companion.h"
#include "plan/fault.h"
#include "plan/finish.h"
#include "plan/layout.h"

/* Most layers that are looked at one by one: far above any model, and what a hostile config may cost. */
enum { MOST_LAYERS = 65536 };

#define NOT_KNOWN UINT32_MAX

/* What a layer has in the files, and what a name of the table stands for. */
enum { IS_THERE = 1, IS_EXPERT = 2, IS_MIXER = 4, IS_ATTENTION = 8 };

/* Rows that count the same layers: they have the same text before their first '#'. */
typedef struct layer_group {
    const char *prefix;
    size_t length;
    int64_t n_layers;
    uint8_t *has; /* layer → what the group's rows have in it */
} layer_group;

/* A name of the table, whatever rows share it. */
typedef struct table_name {
    const sw_family_row *row; /* the first of them */
    uint32_t group;           /* NOT_KNOWN: it has no layer */
    bool has_experts;
    bool by_layer;   /* whether it is there depends on the layer */
    bool is_mixer;   /* a row of this name belongs to a mixer */
    bool is_another; /* a row of this name does not */
    uint8_t is;      /* IS_... */
    uint64_t n_present;
    uint64_t n_wanted;
    int64_t n_experts; /* in a layer; 1 without */
} table_name;

typedef struct search {
    sw_plan *plan;
    const sw_model *model;
    table_name *names;
    uint32_t n_names;
    layer_group *groups;
    uint32_t n_groups;
    uint32_t *name_of; /* pattern → index into names, or NOT_KNOWN */
} search;

static void drop_search(search *s)
{
    for (uint32_t i = 0; i < s->n_groups; i++)
        sw_free(s->groups[i].has);
    sw_free(s->groups);
    sw_free(s->names);
    sw_free(s->name_of);
}

/* ---- what the table and the config ask for ---- */

/* Value of an expression on this config; false when a number is missing. */
static bool value_of(const search *s, const char *text, int64_t layer, int64_t *out)
{
    return sw_expression(text, &s->model->config.attributes, layer, out, NULL) == SW_OK;
}

static bool is_wanted_by(const search *s, const sw_family_row *row, int64_t layer)
{
    int64_t holds = 1;

    if ((row->flags & (SW_ROW_OPTIONAL | SW_ROW_BUFFER)) != 0)
        return false;
    return row->when == NULL || (value_of(s, row->when, layer, &holds) && holds != 0);
}

/* Does the config ask for the name in this layer (0 for a name without one)? */
static bool is_wanted(const search *s, const table_name *name, int64_t layer)
{
    return is_wanted_by(
        s, sw_family_row_for(s->model->family, name->row, &s->model->config.attributes, layer), layer);
}

static uint32_t find_name(const search *s, const char *text)
{
    for (uint32_t i = 0; i < s->n_names; i++) {
        if (strcmp(s->names[i].row->name, text) == 0)
            return i;
    }
    return NOT_KNOWN;
}

static uint32_t find_group(search *s, const char *name, size_t length)
{
    for (uint32_t i = 0; i < s->n_groups; i++) {
        if (s->groups[i].length == length && memcmp(s->groups[i].prefix, name, length) == 0)
            return i;
    }
    layer_group *g = &s->groups[s->n_groups];
    *g = (layer_group){.prefix = name, .length = length};
    if (!value_of(s, sw_family_layer_count(s->model->family, name), 0, &g->n_layers) || g->n_layers < 0 ||
        g->n_layers > MOST_LAYERS)
        g->n_layers = 0;
    g->has = sw_alloc_zero((size_t)g->n_layers + 1, sizeof *g->has);
    return s->n_groups++;
}

static void note_row(table_name *name, const sw_family_row *row)
{
    bool is_mixer = (row->flags & SW_ROW_MIXER) != 0;

    name->by_layer = name->by_layer || (row->when != NULL && strstr(row->when, "layer") != NULL);
    name->is_mixer = name->is_mixer || is_mixer;
    name->is_another = name->is_another || !is_mixer;
}

static bool add_name(search *s, const sw_family_row *row)
{
    uint32_t at = find_name(s, row->name);

    if (at != NOT_KNOWN) {
        note_row(&s->names[at], row);
        return true;
    }
    const char *mark = strchr(row->name, '#');
    table_name *name = &s->names[s->n_names++];
    *name = (table_name){.row = row, .group = NOT_KNOWN, .n_experts = 1, .is = IS_THERE};
    note_row(name, row);
    if (mark == NULL)
        return true;
    name->group = find_group(s, row->name, (size_t)(mark - row->name));
    name->has_experts = strchr(mark + 1, '#') != NULL;
    if (name->has_experts &&
        (!value_of(s, sw_family_inner_count(s->model->family, row->name), 0, &name->n_experts) ||
         name->n_experts < 0 || name->n_experts > SW_MAX_TENSORS))
        name->n_experts = 0;
    if (name->has_experts && row->role == SW_ROLE_MOE_EXPERT)
        name->is |= IS_EXPERT;
    return s->groups[name->group].has != NULL;
}

/* The module of a layer that a name is in: "self_attn" of "model.layers.#.self_attn.q_proj.weight". */
static size_t module_of(const table_name *name, const char **module)
{
    *module = strchr(name->row->name, '#') + 1;
    *module += **module == '.';
    return strcspn(*module, ".");
}

/*
 * Mixers, and the attentions that stand in their place in other layers: a module that holds heads. A name
 * that both have (Kimi Linear's q_proj) tells nothing.
 */
static void tell_mixers(search *s)
{
    for (uint32_t i = 0; i < s->n_names; i++) {
        table_name *name = &s->names[i];
        const char *module = NULL;
        if (name->is_mixer && !name->is_another)
            name->is |= IS_MIXER;
        if (name->group == NOT_KNOWN || name->is_mixer || !sw_layout_has_heads(name->row->layout))
            continue;
        size_t length = module_of(name, &module);
        for (uint32_t k = 0; k < s->n_names; k++) {
            const char *other = NULL;
            if (s->names[k].group == name->group && !s->names[k].is_mixer &&
                module_of(&s->names[k], &other) == length && memcmp(module, other, length) == 0)
                s->names[k].is |= IS_ATTENTION;
        }
    }
}

static bool add_names(search *s)
{
    size_t n_rows = 0;

    for (const sw_family_block *block = s->model->family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++)
            n_rows++;
    }
    s->names = sw_alloc_zero(n_rows + 1, sizeof *s->names);
    s->groups = sw_alloc_zero(n_rows + 1, sizeof *s->groups);
    if (s->names == NULL || s->groups == NULL)
        return false;
    for (const sw_family_block *block = s->model->family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            if (!add_name(s, row))
                return false;
        }
    }
    tell_mixers(s);
    return true;
}

/* ---- what the files have ---- */

static bool count_present(search *s)
{
    const sw_model *model = s->model;

    s->name_of = sw_alloc_zero((size_t)model->n_patterns + 1, sizeof *s->name_of);
    if (s->name_of == NULL)
        return false;
    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_class *c = &s->plan->classes[i];
        bool is_itself = c->row != NULL && (c->companion == NULL || c->companion->is_weight);
        s->name_of[i] = is_itself ? find_name(s, c->row->name) : NOT_KNOWN;
        if (s->name_of[i] != NOT_KNOWN)
            s->names[s->name_of[i]].n_present += model->patterns[i].n_params;
    }
    for (size_t i = 0; i < model->n_params; i++) {
        const sw_param_node *p = &model->params[i];
        uint32_t at = s->name_of[p->pattern];
        if (at == NOT_KNOWN || s->names[at].group == NOT_KNOWN)
            continue;
        layer_group *g = &s->groups[s->names[at].group];
        if (p->layer >= 0 && p->layer < g->n_layers)
            g->has[p->layer] |= s->names[at].is;
    }
    return true;
}

/*
 * May the name be asked for in this layer? Not where the layer is not there at all, and not where the other
 * of mixer and attention stands: the files say better than a config which of the two a layer has.
 */
static bool may_ask(const table_name *name, uint8_t has)
{
    uint8_t other = (name->is & IS_MIXER) != 0 ? IS_ATTENTION : (name->is & IS_ATTENTION) != 0 ? IS_MIXER : 0;

    return (has & IS_THERE) != 0 && (other == 0 || (has & (IS_MIXER | IS_ATTENTION)) != other);
}

/* How often the name should stand in the files, in layers that have what `in` says. */
static uint64_t count_wanted(const search *s, const table_name *name, uint8_t in)
{
    const layer_group *g = name->group == NOT_KNOWN ? NULL : &s->groups[name->group];
    bool holds = !name->by_layer && is_wanted(s, name, 0);
    uint64_t n = 0;

    if (g == NULL)
        return holds ? 1 : 0;
    for (int64_t layer = 0; layer < g->n_layers; layer++) {
        if ((g->has[layer] & in) != 0 && may_ask(name, g->has[layer]) &&
            (holds || (name->by_layer && is_wanted(s, name, layer))))
            n += (uint64_t)name->n_experts;
    }
    return n;
}

/* ---- what is no fault ---- */

static size_t component_length(const char *name)
{
    return strcspn(name, ".");
}

/* Has the model anything of the component that a name begins with? */
static bool has_component(const search *s, const char *name)
{
    size_t length = component_length(name);

    for (uint32_t i = 0; i < s->n_names; i++) {
        const table_name *other = &s->names[i];
        if (other->n_present > 0 && component_length(other->row->name) == length &&
            memcmp(other->row->name, name, length) == 0)
            return true;
    }
    return false;
}

static bool has_role(const search *s, sw_role role)
{
    for (uint32_t i = 0; i < s->model->n_patterns; i++) {
        if (s->plan->classes[i].role == role)
            return true;
    }
    return false;
}

/* Do the files hold the like under a name that the table does not ask for (fused, stacked, an older name)? */
static bool has_other_form(const search *s, sw_role role)
{
    for (uint32_t i = 0; i < s->model->n_patterns; i++) {
        const sw_class *c = &s->plan->classes[i];
        const sw_shape *shape = sw_model_tensor(s->model, s->model->patterns[i].first_param)->shape;
        bool is_asked_for = s->name_of[i] != NOT_KNOWN && s->names[s->name_of[i]].n_wanted > 0;
        bool is_fused = c->role == SW_ROLE_FUSED_QKV || c->role == SW_ROLE_FUSED_GATE_UP;
        if (c->companion == NULL && !is_asked_for && shape != NULL && shape->n_dims >= 2 &&
            (c->role == role || (role == SW_ROLE_COLWISE && is_fused)))
            return true;
    }
    return false;
}

/* The last two segments of a name: "norm.weight". */
static const char *tail_of(const char *name, size_t length)
{
    int n_dots = 0;

    for (size_t i = length; i > 0; i--) {
        n_dots += name[i - 1] == '.';
        if (n_dots == 2)
            return name + i;
    }
    return name;
}

/*
 * Do the files hold a name outside the layers in another place, as a wrapper class moves it (the decoder's
 * norm as model.language_model.norm.weight)?
 */
static bool has_other_place(const search *s, const table_name *name)
{
    const char *tail = tail_of(name->row->name, strlen(name->row->name));

    for (uint32_t i = 0; i < s->model->n_patterns && name->group == NOT_KNOWN; i++) {
        const sw_class *c = &s->plan->classes[i];
        const sw_pattern_node *pattern = &s->model->patterns[i];
        bool is_asked_for = s->name_of[i] != NOT_KNOWN && s->names[s->name_of[i]].n_wanted > 0;
        if (c->role == name->row->role && !c->is_tower && !is_asked_for && c->companion == NULL &&
            s->model->params[pattern->first_param].layer < 0 &&
            strcmp(tail_of(pattern->text, pattern->length), tail) == 0)
            return true;
    }
    return false;
}

/* Is it right that no tensor of this name is there? */
static bool may_lack_all(const search *s, const table_name *name)
{
    sw_role role = name->row->role;
    const sw_attributes *a = &s->model->config.attributes;
    bool is_tied = a->is_set[SW_ATTR_TIED] && a->value[SW_ATTR_TIED] != 0;

    if (role == SW_ROLE_LM_HEAD)
        return has_role(s, SW_ROLE_LM_HEAD) || !sw_has_language_head(s->plan);
    if (role == SW_ROLE_EMBED)
        return has_role(s, SW_ROLE_EMBED) || (is_tied && has_role(s, SW_ROLE_LM_HEAD));
    return !has_component(s, name->row->name) || has_other_form(s, role) || has_other_place(s, name);
}

/* ---- findings ---- */

/* The first place that the files lack: they are in the order of the model. */
static void find_first(const search *s, uint32_t at, int64_t *layer, int64_t *expert)
{
    const table_name *name = &s->names[at];
    const layer_group *g = &s->groups[name->group];
    size_t next = 0;

    for (*layer = 0; *layer < g->n_layers; (*layer)++) {
        if (!may_ask(name, g->has[*layer]) || !is_wanted(s, name, *layer))
            continue;
        for (*expert = 0; *expert < name->n_experts; (*expert)++) {
            while (next < s->model->n_params && s->name_of[s->model->params[next].pattern] != at)
                next++;
            const sw_param_node *p = next < s->model->n_params ? &s->model->params[next] : NULL;
            if (p == NULL || p->layer != *layer || (name->has_experts && p->expert != *expert))
                return;
            next++;
        }
    }
}

/* "3 of 48 are not in the files, the first is that of layer 2, expert 5". */
static void describe(const search *s, uint32_t at, char *text, size_t capacity)
{
    const table_name *name = &s->names[at];
    int64_t layer = 0;
    int64_t expert = 0;

    if (name->group == NOT_KNOWN) {
        (void)snprintf(text, capacity, "config.json asks for it, and it is not in the files");
        return;
    }
    find_first(s, at, &layer, &expert);
    int n = snprintf(text, capacity,
                     "%" PRIu64 " of %" PRIu64 " are not in the files, the first is that of layer %" PRId64,
                     name->n_wanted - name->n_present, name->n_wanted, layer);
    if (name->has_experts)
        (void)snprintf(text + n, capacity - (size_t)n, ", expert %" PRId64, expert);
}

/* A block that has some of its experts would compute without the others: that is never meant. One that has
 * none is half a model. */
static void report(const search *s, uint32_t at)
{
    const table_name *name = &s->names[at];
    const sw_family_row *row = name->row;
    bool is_hole = (name->is & IS_EXPERT) != 0 && name->n_present < count_wanted(s, name, IS_EXPERT);
    char what[192];

    describe(s, at, what, sizeof what);
    (void)sw_plan_fault(s->plan, is_hole || s->plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING,
                        "missing_tensors", row->name, strlen(row->name),
                        "check that all files of the checkpoint are there and config.json is its", "%s",
                        what);
}

/* Layers of the config of which nothing is there: they would be empty stages of a pipeline. */
static sw_status check_layers(const search *s, sw_error *err)
{
    const sw_attributes *a = &s->model->config.attributes;
    int64_t layers = a->is_set[SW_ATTR_LAYERS] ? a->value[SW_ATTR_LAYERS] : 0;
    int64_t n = 0;
    int64_t first = 0;

    if (layers <= 0 || layers > SW_MAX_TENSORS)
        return SW_OK;
    bool *is_there = sw_alloc_zero((size_t)layers, sizeof *is_there);
    if (is_there == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints");
    for (uint32_t i = 0; i < s->model->n_params; i++) {
        int32_t layer = s->model->params[i].layer;
        if (layer < 0 || layer >= layers || is_there[layer] || sw_class_of(s->plan, i)->is_tower)
            continue;
        is_there[layer] = true;
        n++;
    }
    while (first < layers && is_there[first])
        first++;
    sw_free(is_there);
    if (n < layers) {
        (void)sw_plan_fault(s->plan, s->plan->strict ? SW_SEVERITY_ERROR : SW_SEVERITY_WARNING,
                            "missing_layers", "", 0,
                            "check that all files of the checkpoint are there and config.json is its",
                            "%" PRId64 " of %" PRId64 " layers have no tensor, the first is layer %" PRId64,
                            layers - n, layers, first);
    }
    return SW_OK;
}

sw_status sw_lint_missing(sw_plan *plan, sw_error *err)
{
    search s SW_AUTO(drop_search) = {.plan = plan, .model = plan->model};

    if (plan->model == NULL || plan->model->family == NULL)
        return SW_OK;
    if (!add_names(&s) || !count_present(&s))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the lints");
    for (uint32_t i = 0; i < s.n_names; i++)
        s.names[i].n_wanted = count_wanted(&s, &s.names[i], IS_THERE);
    for (uint32_t i = 0; i < s.n_names; i++) {
        const table_name *name = &s.names[i];
        if (name->n_present < name->n_wanted && !(name->n_present == 0 && may_lack_all(&s, name)))
            report(&s, i);
    }
    return check_layers(&s, err);
}
