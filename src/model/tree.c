/*
 * From a list of tensors to a model in order: patterns, sort keys, modules. One pass over the names builds
 * the patterns; the sort is skipped when the list is in order already; modules are found by comparing each
 * name with the one before it, and by a map only where that does not tell.
 */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/pattern.h"

/* Where a parameter stands: compared field by field. */
typedef struct sort_key {
    uint32_t group; /* run of rows that share what stands before the first count */
    int32_t layer;
    uint32_t inner; /* the same for the second count */
    int32_t expert;
    uint32_t row;
    uint32_t tensor; /* index in the list: the key is total */
} sort_key;

typedef struct pattern_place {
    uint32_t group;
    uint32_t inner;
    uint32_t row;
} pattern_place;

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the model's tree");
}

/* Give every parameter its pattern. `buffer` holds the longest name. */
static sw_status find_patterns(sw_model *model, sw_map *map, char *buffer, sw_error *err)
{
    uint32_t capacity = 0;

    for (size_t i = 0; i < model->n_params; i++) {
        sw_param_node *param = &model->params[i];
        const sw_tensor_entry *tensor = &model->list.tensors[i];
        int32_t counts[2];
        uint32_t length = sw_make_pattern(tensor->name, buffer, counts);
        bool is_new = false;
        uint32_t *at = sw_map_put(map, buffer, length, model->n_patterns, &is_new);
        if (at == NULL)
            return no_memory(err);
        if (is_new) {
            if (model->n_patterns == capacity) {
                capacity = capacity == 0 ? 64 : capacity * 2;
                void *grown = sw_realloc(model->patterns, capacity * sizeof *model->patterns);
                if (grown == NULL)
                    return no_memory(err);
                model->patterns = grown;
            }
            char *text = sw_arena_copy(model->arena, buffer, length);
            if (text == NULL)
                return no_memory(err);
            sw_map_rekey(at, text);
            model->patterns[model->n_patterns++] = (sw_pattern_node){.text = text, .length = length};
        }
        param->tensor = (uint32_t)i;
        param->pattern = *at;
        param->layer = counts[0];
        param->expert = counts[1];
    }
    return SW_OK;
}

/* Length of the text before the n-th count of a pattern; 0 when it has fewer. */
static uint32_t before_count(const char *text, uint32_t length, int n)
{
    for (uint32_t i = 0; i < length; i++) {
        bool whole =
            text[i] == '#' && (i == 0 || text[i - 1] == '.') && (i + 1 == length || text[i + 1] == '.');
        if (whole && --n == 0)
            return i + 1;
    }
    return 0;
}

/* Patterns without a row sort after those with one; heads last of all, embeddings first. */
enum { CLASS_FIRST = 0, CLASS_LAYERS = 1000000, CLASS_AFTER = 2000000, CLASS_LAST = 3000000 };

static bool has_text(const sw_pattern_node *pattern, const char *text)
{
    return strstr(pattern->text, text) != NULL;
}

static uint32_t class_of(const sw_pattern_node *pattern)
{
    if (pattern->row != NULL)
        return CLASS_LAYERS; /* the table's own order says what stands before and after the layers */
    if (has_text(pattern, "lm_head") || has_text(pattern, "embed_out"))
        return CLASS_LAST;
    if (before_count(pattern->text, pattern->length, 1) > 0)
        return CLASS_LAYERS;
    if (has_text(pattern, "emb") || has_text(pattern, "wte") || has_text(pattern, "wpe"))
        return CLASS_FIRST;
    return CLASS_AFTER;
}

static uint32_t flat_row_index(const sw_family *family, const sw_family_row *row)
{
    uint32_t index = 0;

    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *r = *block; r->name != NULL; r++, index++) {
            if (r == row)
                return index;
        }
    }
    return index;
}

/*
 * Rank of every pattern. A family's rows give the order where they match; other patterns come in order of
 * first appearance after the matched ones of the same run. Runs are made of what stands before a count.
 */
static sw_status rank_patterns(sw_model *model, pattern_place *places, sw_error *err)
{
    sw_map runs = {0};
    sw_status status = SW_OK;

    for (uint32_t i = 0; i < model->n_patterns && status == SW_OK; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        uint32_t order = p->row != NULL ? flat_row_index(model->family, p->row) : 100000 + i;
        bool is_new;
        places[i].row = order;
        places[i].group = class_of(p) + order;
        places[i].inner = order;
        for (int n = 1; n <= 2; n++) {
            uint32_t length = before_count(p->text, p->length, n);
            uint32_t *slot = n == 1 ? &places[i].group : &places[i].inner;
            if (length == 0)
                continue;
            uint32_t *at = sw_map_put(&runs, p->text, length, *slot, &is_new);
            if (at == NULL)
                status = no_memory(err);
            else if (*slot < *at)
                *at = *slot;
        }
    }
    for (uint32_t i = 0; i < model->n_patterns && status == SW_OK; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        uint32_t outer = before_count(p->text, p->length, 1);
        uint32_t inner = before_count(p->text, p->length, 2);
        if (outer > 0)
            places[i].group = *sw_map_find(&runs, p->text, outer);
        if (inner > 0)
            places[i].inner = *sw_map_find(&runs, p->text, inner);
    }
    sw_map_clear(&runs);
    return status;
}

static int compare_keys(const void *left, const void *right)
{
    const sort_key *a = left;
    const sort_key *b = right;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    if (a->inner != b->inner)
        return a->inner < b->inner ? -1 : 1;
    if (a->expert != b->expert)
        return a->expert < b->expert ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static sw_status sort_params(sw_model *model, sw_error *err)
{
    size_t n = model->n_params;
    pattern_place *places = sw_alloc_zero(model->n_patterns + 1, sizeof *places);
    sort_key *keys = sw_alloc_zero(n + 1, sizeof *keys);
    sw_param_node *sorted = sw_alloc_zero(n + 1, sizeof *sorted);
    sw_status status = places == NULL || keys == NULL || sorted == NULL ? no_memory(err) : SW_OK;
    bool is_sorted = true;

    if (status == SW_OK)
        status = rank_patterns(model, places, err);
    for (size_t i = 0; i < n && status == SW_OK; i++) {
        const sw_param_node *p = &model->params[i];
        const pattern_place *at = &places[p->pattern];
        keys[i] = (sort_key){at->group, p->layer, at->inner, p->expert, at->row, (uint32_t)i};
        is_sorted = is_sorted && (i == 0 || compare_keys(&keys[i - 1], &keys[i]) < 0);
    }
    if (status == SW_OK && !is_sorted) {
        qsort(keys, n, sizeof *keys, compare_keys);
        for (size_t i = 0; i < n; i++)
            sorted[i] = model->params[keys[i].tensor];
        memcpy(model->params, sorted, n * sizeof *sorted);
    }
    sw_free(places);
    sw_free(keys);
    sw_free(sorted);
    return status;
}

/* ---- modules ---- */

typedef struct module_builder {
    sw_model *model;
    sw_map by_fqn;
    uint32_t capacity;
    sw_error *err;
} module_builder;

static sw_status add_module(module_builder *b, const char *fqn, uint32_t length, uint32_t segment,
                            uint32_t parent, uint32_t param, uint32_t *out)
{
    sw_model *model = b->model;
    bool is_new = false;
    uint32_t *at = sw_map_put(&b->by_fqn, fqn, length, model->n_modules, &is_new);

    if (at == NULL)
        return no_memory(b->err);
    *out = *at;
    if (!is_new)
        return SW_OK;
    if (model->n_modules == b->capacity) {
        uint32_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
        void *grown = sw_realloc(model->modules, capacity * sizeof *model->modules);
        if (grown == NULL)
            return no_memory(b->err);
        model->modules = grown;
        b->capacity = capacity;
    }
    model->modules[model->n_modules++] = (sw_module_node){
        .fqn = fqn, .fqn_length = length, .segment = segment, .parent = parent, .first_param = param};
    if (parent != SW_NO_MODULE)
        model->modules[parent].n_children++;
    return SW_OK;
}

/* Owner of a parameter, and every module above it. Modules of the previous name are reused while they agree.
 */
static sw_status own(module_builder *b, uint32_t param, uint32_t *previous)
{
    const sw_tensor_entry *tensor = sw_model_tensor(b->model, param);
    uint32_t parent = 0;
    uint32_t begin = 0;

    if (*previous != SW_NO_MODULE) {
        const sw_module_node *m = &b->model->modules[*previous];
        const char *rest = tensor->name + m->fqn_length;
        if (tensor->name_length > m->fqn_length && m->fqn_length > 0 &&
            memcmp(tensor->name, m->fqn, m->fqn_length) == 0 && *rest == '.') {
            parent = *previous;
            begin = m->fqn_length + 1;
        }
    }
    for (uint32_t i = begin; i < tensor->name_length; i++) {
        if (tensor->name[i] == '.') {
            SW_TRY(add_module(b, tensor->name, i, begin, parent, param, &parent));
            begin = i + 1;
        }
    }
    b->model->params[param].module = parent;
    b->model->modules[parent].n_own++;
    *previous = parent;
    return SW_OK;
}

static sw_status build_modules(sw_model *model, sw_error *err)
{
    module_builder b = {.model = model, .err = err};
    uint32_t previous = SW_NO_MODULE;
    uint32_t root = 0;
    sw_status status = add_module(&b, "", 0, 0, SW_NO_MODULE, 0, &root);

    for (size_t i = 0; i < model->n_params && status == SW_OK; i++)
        status = own(&b, (uint32_t)i, &previous);
    sw_map_clear(&b.by_fqn);
    return status;
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

static void count(sw_model *model)
{
    int32_t highest = -1;

    model->has_shapes = true;
    for (uint32_t i = 0; i < model->n_patterns; i++)
        model->patterns[i].first_param = UINT32_MAX;
    for (size_t i = 0; i < model->n_params; i++) {
        const sw_param_node *p = &model->params[i];
        const sw_tensor_entry *t = &model->list.tensors[p->tensor];
        sw_pattern_node *pattern = &model->patterns[p->pattern];
        uint64_t shape_hash = 0;
        if (pattern->first_param == UINT32_MAX)
            pattern->first_param = (uint32_t)i;
        pattern->n_params++;
        if (t->shape == NULL) {
            model->has_shapes = false;
        } else {
            model->elements += t->shape->elems;
            shape_hash = sw_hash(t->shape->dims, t->shape->n_dims * sizeof *t->shape->dims, t->shape->n_dims);
        }
        /* A sum does not depend on the order of the files. */
        model->fingerprint += sw_hash(t->name, t->name_length, shape_hash ^ ((uint64_t)t->dtype << 56));
        highest = p->layer > highest ? p->layer : highest;
    }
    model->n_layers = (uint32_t)(highest + 1);
    if (model->config.attributes.is_set[SW_ATTR_LAYERS])
        model->n_layers = (uint32_t)model->config.attributes.value[SW_ATTR_LAYERS];
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

sw_status sw_model_build(sw_model *model, sw_error *err)
{
    sw_map map = {0};
    size_t longest = 0;

    model->n_params = model->list.n_tensors;
    model->params = sw_alloc_zero(model->n_params + 1, sizeof *model->params);
    for (size_t i = 0; i < model->n_params; i++)
        longest = model->list.tensors[i].name_length > longest ? model->list.tensors[i].name_length : longest;
    char *buffer = sw_alloc(longest + 1);
    sw_status status = model->params == NULL || buffer == NULL ? no_memory(err) : SW_OK;
    if (status == SW_OK)
        status = find_patterns(model, &map, buffer, err);
    sw_map_clear(&map);
    sw_free(buffer);
    SW_TRY(status);
    match_rows(model);
    SW_TRY(sort_params(model, err));
    SW_TRY(build_modules(model, err));
    count(model);
    return SW_OK;
}
