/*
 * Sorting by counting. Patterns, a few hundred, are ranked by comparison; parameters, of which there may be
 * half a million, are then distributed by five small numbers in turn, the least important first. What still
 * is equal has three counts or more in its name, and is compared.
 */
#include "model/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "model/pattern.h"

/* Where the parameters of a pattern stand. Each number is below the number of patterns. */
typedef struct place {
    uint32_t run;   /* patterns with the same text up to the first count: their layers alternate */
    uint32_t inner; /* the same for the second count: their experts alternate */
    uint32_t row;   /* of the pattern alone */
} place;

/* Before its rank, a pattern has an order: a part of the model, then the row of the family's table. */
typedef enum part { PART_FIRST = 0, PART_TABLE, PART_LAYERS, PART_AFTER, PART_HEAD } part;

typedef struct ranked {
    const sw_pattern_node *pattern;
    uint32_t index; /* of the pattern */
    part part;
    uint32_t row;
} ranked;

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the order of the parameters");
}

static bool has_word(const sw_pattern_node *pattern, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strstr(pattern->text, *words) != NULL)
            return true;
    }
    return false;
}

/*
 * The row that says where a pattern stands: its own, or that of the weight of its module, behind which
 * scales, packed words and the like belong.
 */
static const sw_family_row *row_near(const sw_model *model, const sw_pattern_node *pattern)
{
    static const char weight[] = "weight";
    const char *dot = strrchr(pattern->text, '.');
    size_t stem = dot == NULL ? 0 : (size_t)(dot - pattern->text) + 1;
    char text[512];

    if (pattern->row != NULL || stem == 0 || stem + sizeof weight > sizeof text)
        return pattern->row;
    memcpy(text, pattern->text, stem);
    memcpy(text + stem, weight, sizeof weight);
    return sw_family_match(model->family, text, stem + sizeof weight - 1, NULL);
}

/* A family's table is in model order. Names that it lacks are placed by what they say. */
static part part_of(const sw_pattern_node *pattern, const sw_family_row *row)
{
    static const char *const heads[] = {"lm_head", "embed_out", NULL};
    static const char *const embeddings[] = {"emb", "wte", "wpe", NULL};
    bool has_layers = memchr(pattern->text, '#', pattern->length) != NULL;

    if (!has_layers && row != NULL && row->role == SW_ROLE_LM_HEAD)
        return PART_HEAD;
    if (row != NULL)
        return PART_TABLE;
    if (has_word(pattern, heads))
        return PART_HEAD;
    if (has_layers)
        return PART_LAYERS;
    return has_word(pattern, embeddings) ? PART_FIRST : PART_AFTER;
}

static uint32_t row_number(const sw_family *family, const sw_family_row *row)
{
    uint32_t n = 0;

    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *at = *block; at->name != NULL; at++, n++) {
            if (at == row)
                return n;
        }
    }
    return n;
}

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;

    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return sw_compare_names(a->pattern->text, b->pattern->text);
}

/* The rank of the first pattern that shares the text up to the n-th count; `own` when there is no such count.
 */
static bool shared_rank(sw_map *runs, const sw_pattern_node *pattern, int n, uint32_t own, uint32_t *out)
{
    uint32_t length = sw_pattern_before_count(pattern->text, pattern->length, n);
    bool is_new = false;

    *out = own;
    if (length == 0)
        return true;
    const uint32_t *at = sw_map_put(runs, pattern->text, length, own, &is_new);
    if (at != NULL)
        *out = *at;
    return at != NULL;
}

static bool place_patterns(const sw_model *model, ranked *order, place *places)
{
    sw_map runs SW_AUTO(sw_map_clear) = {0};

    for (uint32_t i = 0; i < model->n_patterns; i++) {
        const sw_pattern_node *p = &model->patterns[i];
        const sw_family_row *row = row_near(model, p);
        order[i] = (ranked){p, i, part_of(p, row), row == NULL ? 0 : row_number(model->family, row)};
    }
    qsort(order, model->n_patterns, sizeof *order, compare_ranked);
    for (uint32_t rank = 0; rank < model->n_patterns; rank++) {
        place *at = &places[order[rank].index];
        at->row = rank;
        if (!shared_rank(&runs, order[rank].pattern, 1, rank, &at->run) ||
            !shared_rank(&runs, order[rank].pattern, 2, rank, &at->inner))
            return false;
    }
    return true;
}

/* ---- parameters ---- */

/* What the sort looks at, the least important first. Counts are moved up by one: -1 means none. */
typedef uint32_t sort_key(const sw_param_node *param, const place *at);

static uint32_t key_row(const sw_param_node *param, const place *at)
{
    (void)param;
    return at->row;
}

static uint32_t key_expert(const sw_param_node *param, const place *at)
{
    (void)at;
    return (uint32_t)(param->expert + 1);
}

static uint32_t key_inner(const sw_param_node *param, const place *at)
{
    (void)param;
    return at->inner;
}

static uint32_t key_layer(const sw_param_node *param, const place *at)
{
    (void)at;
    return (uint32_t)(param->layer + 1);
}

static uint32_t key_run(const sw_param_node *param, const place *at)
{
    (void)param;
    return at->run;
}

static sort_key *const sort_keys[] = {key_row, key_expert, key_inner, key_layer, key_run};

/* Two arrays of parameters that take turns, and the counters. */
typedef struct sorter {
    const place *places;
    size_t n_params;
    sw_param_node *from;
    sw_param_node *to;
    uint32_t *starts; /* SW_COUNT_LIMIT + 1 */
} sorter;

static void distribute(sorter *s, sort_key *key)
{
    uint32_t largest = 0;
    uint32_t start = 0;

    for (size_t i = 0; i < s->n_params; i++) {
        uint32_t k = key(&s->from[i], &s->places[s->from[i].pattern]);
        largest = k > largest ? k : largest;
    }
    memset(s->starts, 0, (largest + 1) * sizeof *s->starts);
    for (size_t i = 0; i < s->n_params; i++)
        s->starts[key(&s->from[i], &s->places[s->from[i].pattern])]++;
    for (uint32_t k = 0; k <= largest; k++) {
        uint32_t n = s->starts[k];
        s->starts[k] = start;
        start += n;
    }
    for (size_t i = 0; i < s->n_params; i++)
        s->to[s->starts[key(&s->from[i], &s->places[s->from[i].pattern])]++] = s->from[i];
    sw_param_node *sorted = s->to;
    s->to = s->from;
    s->from = sorted;
}

static bool is_tied(const sw_param_node *a, const sw_param_node *b)
{
    return a->pattern == b->pattern && a->layer == b->layer && a->expert == b->expert;
}

static int compare_tied(const void *left, const void *right, void *tensors)
{
    const sw_tensor_entry *list = tensors;
    const sw_param_node *a = left;
    const sw_param_node *b = right;

    return sw_compare_names(list[a->tensor].name, list[b->tensor].name);
}

static void order_tied(sw_model *model)
{
    for (size_t i = 0, end = 1; i < model->n_params; i = end, end++) {
        while (end < model->n_params && is_tied(&model->params[i], &model->params[end]))
            end++;
        if (end - i > 1)
            qsort_r(&model->params[i], end - i, sizeof *model->params, compare_tied, model->list.tensors);
    }
}

sw_status sw_model_order(sw_model *model, sw_error *err)
{
    uint32_t n_patterns = model->n_patterns;
    ranked *order = sw_alloc_zero(n_patterns + 1, sizeof *order);
    place *places = sw_alloc_zero(n_patterns + 1, sizeof *places);
    sorter s = {.places = places, .n_params = model->n_params, .from = model->params};

    s.to = sw_alloc((model->n_params + 1) * sizeof *s.to);
    s.starts = sw_alloc((SW_COUNT_LIMIT + 1) * sizeof *s.starts);
    bool done = order != NULL && places != NULL && s.to != NULL && s.starts != NULL &&
                place_patterns(model, order, places);
    for (size_t i = 0; done && i < SW_COUNT(sort_keys); i++)
        distribute(&s, sort_keys[i]);
    model->params = s.from;
    if (done)
        order_tied(model);
    sw_free(s.to);
    sw_free(s.starts);
    sw_free(order);
    sw_free(places);
    return done ? SW_OK : no_memory(err);
}
