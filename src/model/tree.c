/*
 * From a list of tensors to a model: patterns, order, modules, totals. Names are read twice and hashed once:
 * modules are found by the pattern and the counts of their parameters. This works because of the order: the
 * parameters of one layer, and in it of one expert, follow one another in every run, so a module that was
 * left is not met again. Names with three counts or more do not keep this promise; their deeper modules are
 * looked up by name.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/model.h"
#include "model/order.h"
#include "model/pattern.h"

/* No model comes near them. They bound what a hostile file of small names can make of itself. */
enum {
    MAX_PATTERNS = 10000,
    MAX_PATTERN_BYTES = 16 << 20, /* of all of them */
    MAX_SEGMENTS = 64,
    MAX_MODULES = 1000000,
    MAX_LAYERS = SW_COUNT_LIMIT
};

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the model's tree");
}

/* Room for one more item; grows by half. */
static bool make_room(void **items, uint32_t *capacity, uint32_t n, size_t item_bytes)
{
    if (n < *capacity)
        return true;
    uint32_t wanted = n < 64 ? 64 : n + n / 2;
    void *grown = sw_realloc(*items, wanted * item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

/* ---- patterns ---- */

/* Patterns while they are found. */
typedef struct pattern_room {
    uint32_t capacity;
    size_t n_bytes;
} pattern_room;

static sw_status add_pattern(sw_model *model, pattern_room *room, const char *text, uint32_t length,
                             const sw_tensor_entry *tensor, sw_error *err)
{
    uint32_t n_segments = 1;

    for (uint32_t i = 0; i < length; i++)
        n_segments += text[i] == '.';
    if (n_segments > MAX_SEGMENTS) {
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a model",
                       "%.200s: the name '%.100s' has %" PRIu32 " segments, at most %d are read", model->path,
                       tensor->name, n_segments, MAX_SEGMENTS);
    }
    if (model->n_patterns == MAX_PATTERNS) {
        return SW_FAIL(
            err, SW_E_LIMIT, "check that this is a model",
            "%.200s: more than %d names that differ in more than their numbers, the last is '%.100s'",
            model->path, MAX_PATTERNS, tensor->name);
    }
    room->n_bytes += length;
    if (room->n_bytes > MAX_PATTERN_BYTES) {
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a model",
                       "%.200s: names that differ in more than their numbers take more than %d MiB, the last "
                       "is '%.100s'",
                       model->path, MAX_PATTERN_BYTES >> 20, tensor->name);
    }
    char *copy = sw_arena_copy(model->arena, text, length);
    if (copy == NULL ||
        !make_room((void **)&model->patterns, &room->capacity, model->n_patterns, sizeof *model->patterns))
        return no_memory(err);
    model->patterns[model->n_patterns] = (sw_pattern_node){.text = copy, .length = length};
    return SW_OK;
}

/* Give every parameter its pattern. `buffer` holds the longest name. */
static sw_status find_patterns(sw_model *model, char *buffer, sw_error *err)
{
    sw_map map SW_AUTO(sw_map_clear) = {0};
    pattern_room room = {0};

    for (size_t i = 0; i < model->n_params; i++) {
        const sw_tensor_entry *tensor = &model->list.tensors[i];
        int32_t counts[2];
        bool is_new = false;
        uint32_t length = sw_make_pattern(tensor->name, buffer, counts);
        uint32_t *at = sw_map_put(&map, buffer, length, model->n_patterns, &is_new);
        if (at == NULL)
            return no_memory(err);
        if (is_new) {
            SW_TRY(add_pattern(model, &room, buffer, length, tensor, err));
            sw_map_rekey(at, model->patterns[model->n_patterns++].text);
        }
        model->params[i] =
            (sw_param_node){.tensor = (uint32_t)i, .pattern = *at, .layer = counts[0], .expert = counts[1]};
    }
    return SW_OK;
}

static void match_rows(sw_model *model)
{
    for (uint32_t i = 0; i < model->n_patterns; i++) {
        sw_pattern_node *p = &model->patterns[i];
        int cut = 0;
        p->row = sw_family_match(model->family, p->text, p->length, &cut);
        p->prefix_cut = cut;
    }
}

/* ---- modules ---- */

/* A module of a pattern: "model.layers.#.mlp". It remembers the last module of the model that it stood
 * for.
 */
typedef struct stem {
    uint32_t parent;
    uint32_t n_counts;
    uint32_t module; /* SW_NO_MODULE: none yet */
    int32_t layer;   /* counts of that module */
    int32_t expert;
} stem;

typedef struct builder {
    sw_model *model;
    stem *stems; /* [0] is the root */
    uint32_t n_stems;
    uint32_t stems_capacity;
    uint32_t *stem_of; /* per pattern: of the module that owns its parameters */
    sw_map by_fqn;     /* modules with three counts or more */
    uint32_t modules_capacity;
    sw_error *err;
} builder;

static sw_status add_stem(builder *b, uint32_t parent, uint32_t n_counts)
{
    if (!make_room((void **)&b->stems, &b->stems_capacity, b->n_stems, sizeof *b->stems))
        return no_memory(b->err);
    b->stems[b->n_stems++] = (stem){parent, n_counts, SW_NO_MODULE, -1, -1};
    return SW_OK;
}

static sw_status find_stems(builder *b)
{
    sw_map map SW_AUTO(sw_map_clear) = {0};

    SW_TRY(add_stem(b, 0, 0));
    for (uint32_t i = 0; i < b->model->n_patterns; i++) {
        const sw_pattern_node *p = &b->model->patterns[i];
        uint32_t at = 0;
        uint32_t n_counts = 0;
        for (uint32_t end = 0; end < p->length; end++) {
            bool is_new = false;
            n_counts += p->text[end] == '#';
            if (p->text[end] != '.')
                continue;
            const uint32_t *known = sw_map_put(&map, p->text, end, b->n_stems, &is_new);
            if (known == NULL)
                return no_memory(b->err);
            if (is_new)
                SW_TRY(add_stem(b, at, n_counts));
            at = *known;
        }
        b->stem_of[i] = at;
    }
    return SW_OK;
}

/* Does the stem stand for a module of this parameter already? */
static bool is_current(const stem *s, const sw_param_node *param)
{
    if (s->module == SW_NO_MODULE || s->n_counts > 2)
        return false;
    return (s->n_counts < 1 || s->layer == param->layer) && (s->n_counts < 2 || s->expert == param->expert);
}

static sw_status add_module(builder *b, const char *fqn, uint32_t length, uint32_t segment, uint32_t parent,
                            uint32_t param)
{
    sw_model *model = b->model;

    if (model->n_modules == MAX_MODULES)
        return SW_FAIL(b->err, SW_E_LIMIT, "check that this is a model", "%s: more than %d modules",
                       model->path, MAX_MODULES);
    if (!make_room((void **)&model->modules, &b->modules_capacity, model->n_modules, sizeof *model->modules))
        return no_memory(b->err);
    model->modules[model->n_modules++] = (sw_module_node){
        .fqn = fqn, .fqn_length = length, .segment = segment, .parent = parent, .first_param = param};
    if (parent != SW_NO_MODULE)
        model->modules[parent].n_children++;
    return SW_OK;
}

/* The module `name`[0, end) of a stem: made, unless it is a deep one that is there. */
static sw_status enter_module(builder *b, uint32_t at, uint32_t parent, uint32_t param, uint32_t end)
{
    const char *name = sw_model_tensor(b->model, param)->name;
    const sw_param_node *node = &b->model->params[param];
    stem *s = &b->stems[at];
    uint32_t module = b->model->n_modules;
    bool is_new = true;

    if (s->n_counts > 2) {
        const uint32_t *known = sw_map_put(&b->by_fqn, name, end, module, &is_new);
        if (known == NULL)
            return no_memory(b->err);
        module = *known;
    }
    if (is_new) {
        uint32_t above = b->model->modules[parent].fqn_length;
        SW_TRY(add_module(b, name, end, s->parent == 0 ? 0 : above + 1, parent, param));
    }
    s->module = module;
    s->layer = node->layer;
    s->expert = node->expert;
    return SW_OK;
}

/* Find or make the module that owns a parameter, and those above it: up to the last that is there, then
 * down.
 */
static sw_status own(builder *b, uint32_t param)
{
    const sw_tensor_entry *tensor = sw_model_tensor(b->model, param);
    sw_param_node *node = &b->model->params[param];
    uint32_t at = b->stem_of[node->pattern];
    uint32_t missing[MAX_SEGMENTS];
    uint32_t ends[MAX_SEGMENTS];
    uint32_t n = 0;
    uint32_t end = tensor->name_length;

    while (at != 0 && !is_current(&b->stems[at], node)) {
        const char *dot = memrchr(tensor->name, '.', end);
        end = (uint32_t)(dot - tensor->name);
        missing[n] = at;
        ends[n++] = end;
        at = b->stems[at].parent;
    }
    uint32_t module = b->stems[at].module;
    while (n > 0) {
        n--;
        SW_TRY(enter_module(b, missing[n], module, param, ends[n]));
        module = b->stems[missing[n]].module;
    }
    node->module = module;
    b->model->modules[module].n_own++;
    return SW_OK;
}

static sw_status build_all(builder *b)
{
    SW_TRY(find_stems(b));
    SW_TRY(add_module(b, "", 0, 0, SW_NO_MODULE, 0));
    b->stems[0].module = 0;
    for (size_t i = 0; i < b->model->n_params; i++)
        SW_TRY(own(b, (uint32_t)i));
    return SW_OK;
}

static sw_status build_modules(sw_model *model, sw_error *err)
{
    builder b = {.model = model, .err = err};

    b.stem_of = sw_alloc_zero(model->n_patterns + 1, sizeof *b.stem_of);
    sw_status status = b.stem_of == NULL ? no_memory(err) : build_all(&b);
    sw_free(b.stem_of);
    sw_free(b.stems);
    sw_map_clear(&b.by_fqn);
    if (status == SW_OK) { /* give back what it did not need; the array can stay where it is */
        void *fitted = sw_realloc(model->modules, model->n_modules * sizeof *model->modules);
        model->modules = fitted == NULL ? model->modules : fitted;
    }
    return status;
}

uint32_t sw_model_find_param(const sw_model *model, const char *fqn, size_t length)
{
    const sw_tensor_entry *t = sw_tensor_list_find(&model->list, fqn, length);

    for (uint32_t i = 0; t != NULL && i < model->n_params; i++) {
        if (sw_model_tensor(model, i) == t)
            return i;
    }
    return UINT32_MAX;
}

uint32_t sw_model_find_module(const sw_model *model, const char *fqn, size_t length)
{
    for (uint32_t i = 0; i < model->n_modules; i++) {
        const sw_module_node *m = &model->modules[i];
        if (m->fqn_length == length && memcmp(m->fqn, fqn, length) == 0)
            return i;
    }
    return SW_NO_MODULE;
}

/* ---- totals ---- */

uint64_t sw_tensor_fingerprint(const sw_tensor_entry *t)
{
    uint64_t of_shape = 0;

    if (t->shape != NULL)
        of_shape = sw_hash(t->shape->dims, t->shape->n_dims * sizeof *t->shape->dims, t->shape->n_dims);
    return sw_hash(t->name, t->name_length, of_shape ^ ((uint64_t)t->dtype << 56));
}

static sw_status count_layers(sw_model *model, int32_t highest, sw_error *err)
{
    const sw_attributes *a = &model->config.attributes;

    model->n_layers = (uint32_t)(highest + 1);
    if (!a->is_set[SW_ATTR_LAYERS])
        return SW_OK;
    if (a->value[SW_ATTR_LAYERS] > MAX_LAYERS)
        return SW_FAIL(err, SW_E_LIMIT, "check the numbers of config.json",
                       "%s: %" PRId64 " layers, at most %d are planned", model->path,
                       a->value[SW_ATTR_LAYERS], MAX_LAYERS);
    model->n_layers = (uint32_t)a->value[SW_ATTR_LAYERS];
    return SW_OK;
}

/* A block that stands alone ("experts.3.w1.weight"): its only count is that of experts, and it is one layer.
 */
static void settle_bare_experts(const sw_model *model, sw_param_node *param)
{
    const sw_pattern_node *p = &model->patterns[param->pattern];
    static const char bare[] = "experts.#.";

    if (p->length < sizeof bare || memcmp(p->text, bare, sizeof bare - 1) != 0)
        return;
    param->expert = param->layer;
    param->layer = 0;
}

static sw_status count(sw_model *model, sw_error *err)
{
    int32_t highest = -1;

    model->has_shapes = true;
    for (size_t i = 0; i < model->n_params; i++) {
        sw_param_node *p = &model->params[i];
        const sw_tensor_entry *t = &model->list.tensors[p->tensor];
        sw_pattern_node *pattern = &model->patterns[p->pattern];
        if (pattern->n_params++ == 0)
            pattern->first_param = (uint32_t)i;
        if (t->shape == NULL) {
            model->has_shapes = false;
        } else if (__builtin_add_overflow(model->elements, t->shape->elems, &model->elements)) {
            return SW_FAIL(
                err, SW_E_LIMIT, "a shape is damaged",
                "%.200s: the number of elements of all parameters does not fit 64 bits, from '%.200s' on",
                model->path, t->name);
        }
        model->fingerprint += sw_tensor_fingerprint(t); /* a sum does not depend on the order */
        settle_bare_experts(model, p);
        highest = p->layer > highest ? p->layer : highest;
    }
    return count_layers(model, highest, err);
}

sw_status sw_model_build(sw_model *model, sw_error *err)
{
    size_t longest = 0;

    model->n_params = model->list.n_tensors;
    model->params = sw_alloc_zero(model->n_params + 1, sizeof *model->params);
    for (size_t i = 0; i < model->n_params; i++)
        longest = model->list.tensors[i].name_length > longest ? model->list.tensors[i].name_length : longest;
    char *buffer = sw_alloc(longest + 1);
    sw_status status =
        model->params == NULL || buffer == NULL ? no_memory(err) : find_patterns(model, buffer, err);
    sw_free(buffer);
    SW_TRY(status);
    match_rows(model);
    SW_TRY(sw_model_order(model, err));
    SW_TRY(build_modules(model, err));
    return count(model, err);
}
