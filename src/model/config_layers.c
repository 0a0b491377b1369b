/*
 * Which layer is what: full attention, attention in a window, or a linear mixer (state space, delta rule),
 * and which layers a config lists as dense. Configs say the former in six ways; the first that is there
 * counts.
 */
#include "model/config_value.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "io/tensor_list.h"

/* Words of layer_types and its kin; what is not listed is full attention. */
static const struct kind {
    const char *word;
    uint8_t kind;
} kinds[] = {
    {"sliding_attention",   SW_LAYER_WINDOW},
    {"chunked_attention",   SW_LAYER_WINDOW},
    {"local_attention",     SW_LAYER_WINDOW},
    {"local",               SW_LAYER_WINDOW},
    {"linear_attention",    SW_LAYER_LINEAR},
    {"mamba",               SW_LAYER_LINEAR},
    {"mamba2",              SW_LAYER_LINEAR},
    {"recurrent",           SW_LAYER_LINEAR},
    {"conv",                SW_LAYER_LINEAR},
    {"kda",                 SW_LAYER_LINEAR},
    {"lightning_attention", SW_LAYER_LINEAR},
};

static uint8_t kind_of_word(const char *word)
{
    for (size_t i = 0; i < SW_COUNT(kinds); i++) {
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].kind;
    }
    return SW_LAYER_FULL;
}

/* A byte a layer is kept: no more of them than a model can have. */
static sw_status check_count(const config_source *source, uint64_t n_layers)
{
    if (n_layers <= SW_MAX_TENSORS)
        return SW_OK;
    return SW_FAIL(source->err, SW_E_LIMIT, "correct the config", "%s: %" PRIu64 " layers are more than %d",
                   source->path, n_layers, SW_MAX_TENSORS);
}

/* A list with an entry a layer: words, or numbers where 0 is linear and 1 is full (MiniMax). */
static sw_status read_list(const config_source *source, const char *key, const json_t *list, sw_arena *arena,
                           sw_attributes *a)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return sw_config_mismatch(source, key, list, "a list");
    if (a->is_set[SW_ATTR_LAYERS] && n < (uint64_t)a->value[SW_ATTR_LAYERS])
        return SW_FAIL(source->err, SW_E_FORMAT, "correct the config",
                       "%s: key \"%s\" has %zu entries for %" PRId64 " layers", source->path, key, n,
                       a->value[SW_ATTR_LAYERS]);
    SW_TRY(check_count(source, n));
    uint8_t *layers = sw_arena_zero(arena, n + 1, 1); /* all full attention, none dense */
    if (layers == NULL)
        return sw_config_no_memory(source);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        int64_t number = 0;
        if (json_is_string(value)) {
            layers[i] = kind_of_word(json_string_value(value));
            continue;
        }
        SW_TRY(sw_config_integer(source, key, value, 0, 1, &number));
        layers[i] = number == 0 ? SW_LAYER_LINEAR : SW_LAYER_FULL;
    }
    a->layer_kinds = layers;
    a->n_layer_kinds = (uint32_t)n;
    return SW_OK;
}

/* Numbers of layers, counted from `first`, that get `mark`. */
static sw_status mark_listed(const config_source *source, const char *key, const json_t *list, int64_t first,
                             uint8_t *layers, uint64_t n_layers, uint8_t mark)
{
    if (!json_is_array(list))
        return sw_config_mismatch(source, key, list, "a list of layers");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t at = 0;
        SW_TRY(sw_config_integer(source, key, json_array_get(list, i), first, first + (int64_t)n_layers - 1,
                                 &at));
        layers[at - first] = mark;
    }
    return SW_OK;
}

/* How one layer in a period stands out. */
typedef struct rhythm {
    const char *period;
    const char *offset; /* NULL: the last of a period */
    uint8_t chosen;
    uint8_t others;
} rhythm;

static const rhythm rhythms[] = {
    {"full_attention_interval", NULL,                SW_LAYER_FULL, SW_LAYER_LINEAR}, /* Qwen3-Next */
    {"attn_layer_period",       "attn_layer_offset", SW_LAYER_FULL, SW_LAYER_LINEAR}, /* Jamba */
    {"sliding_window_pattern",  NULL,                SW_LAYER_FULL, SW_LAYER_WINDOW}, /* Gemma 3 */
};

static sw_status read_rhythm(const config_source *source, const rhythm *r, uint8_t *layers, uint64_t n_layers)
{
    int64_t period = 0;
    int64_t offset = 0;
    SW_TRY(sw_config_integer(source, r->period, sw_config_find(source, r->period), 1, INT32_MAX, &period));
    const json_t *value = r->offset == NULL ? NULL : sw_config_find(source, r->offset);
    if (r->offset == NULL)
        offset = period - 1;
    else if (value != NULL)
        SW_TRY(sw_config_integer(source, r->offset, value, 0, INT32_MAX, &offset));
    for (uint64_t i = 0; i < n_layers; i++)
        layers[i] = (int64_t)(i % (uint64_t)period) == offset ? r->chosen : r->others;
    return SW_OK;
}

/* Kinds that are computed or listed by number: they need the number of layers. */
static sw_status read_computed(const config_source *source, sw_arena *arena, sw_attributes *a)
{
    static const char kda[] = "linear_attn_config.kda_layers"; /* Kimi-Linear counts from 1 */
    const json_t *list = sw_config_find(source, kda);
    const rhythm *found = NULL;
    for (size_t i = 0; i < SW_COUNT(rhythms) && found == NULL; i++)
        found = sw_config_find(source, rhythms[i].period) != NULL ? &rhythms[i] : NULL;
    if ((list == NULL && found == NULL) || !a->is_set[SW_ATTR_LAYERS])
        return SW_OK;
    uint64_t n = (uint64_t)a->value[SW_ATTR_LAYERS];
    SW_TRY(check_count(source, n));
    uint8_t *layers = sw_arena_zero(arena, n + 1, 1); /* all full attention, none dense */
    if (layers == NULL)
        return sw_config_no_memory(source);
    if (list != NULL)
        SW_TRY(mark_listed(source, kda, list, 1, layers, n, SW_LAYER_LINEAR));
    else
        SW_TRY(read_rhythm(source, found, layers, n));
    a->layer_kinds = layers;
    a->n_layer_kinds = (uint32_t)n;
    return SW_OK;
}

static sw_status read_dense(const config_source *source, sw_arena *arena, sw_attributes *a)
{
    static const char key[] = "mlp_only_layers";
    const json_t *list = sw_config_find(source, key);
    if (list == NULL || json_array_size(list) == 0 || !a->is_set[SW_ATTR_LAYERS])
        return SW_OK;
    uint64_t n = (uint64_t)a->value[SW_ATTR_LAYERS];
    SW_TRY(check_count(source, n));
    uint8_t *layers = sw_arena_zero(arena, n + 1, 1); /* all full attention, none dense */
    if (layers == NULL)
        return sw_config_no_memory(source);
    SW_TRY(mark_listed(source, key, list, 0, layers, n, 1));
    a->dense_layers = layers;
    a->n_dense_layers = (uint32_t)n;
    return SW_OK;
}

sw_status sw_config_layers(const config_source *source, sw_arena *arena, sw_attributes *attributes)
{
    static const char *const keys[] = {"layer_types", "layers_block_type", "attn_type_list"};
    SW_TRY(read_dense(source, arena, attributes));
    for (size_t i = 0; i < SW_COUNT(keys); i++) {
        const json_t *list = sw_config_find(source, keys[i]);
        if (list != NULL)
            return read_list(source, keys[i], list, arena, attributes);
    }
    return read_computed(source, arena, attributes);
}
