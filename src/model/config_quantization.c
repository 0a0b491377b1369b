/*
 * How a config says that its weights are quantised: `quantization_config` of transformers and its many
 * methods, or `quantization` of MLX. Only what decides names and shapes is read.
 */
#include "model/config_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MAX_GROUP = 1 << 30, MAX_BITS = 64 };

static const struct method {
    const char *name;
    sw_quantization_method method;
    int64_t bits; /* when the config does not say */
} methods[] = {
    {"fp8",                SW_QUANTIZATION_FP8,                8},
    {"mxfp4",              SW_QUANTIZATION_MXFP4,              4},
    {"gptq",               SW_QUANTIZATION_GPTQ,               0},
    {"awq",                SW_QUANTIZATION_AWQ,                0},
    {"compressed-tensors", SW_QUANTIZATION_COMPRESSED_TENSORS, 0},
    {"bitsandbytes",       SW_QUANTIZATION_BITSANDBYTES,       0},
};

static void recognise(sw_quantization *out)
{
    out->method = SW_QUANTIZATION_OTHER;
    for (size_t i = 0; i < SW_COUNT(methods); i++) {
        if (strcmp(methods[i].name, out->name) == 0) {
            out->method = methods[i].method;
            out->bits = methods[i].bits;
        }
    }
}

/* The first of the keys that the object has, as an integer; untouched when it has none. */
static sw_status read_integer(const config_source *source, const json_t *object, const char *const *keys,
                              int64_t least, int64_t most, int64_t *out)
{
    for (; *keys != NULL; keys++) {
        const json_t *value = sw_config_at(object, *keys);
        if (value != NULL)
            return sw_config_integer(source, *keys, value, least, most, out);
    }
    return SW_OK;
}

static sw_status read_block(const config_source *source, const json_t *object, sw_quantization *out)
{
    static const char key[] = "weight_block_size";
    const json_t *block = sw_config_at(object, key);
    if (block == NULL)
        return SW_OK;
    if (!json_is_array(block) || json_array_size(block) != 2)
        return sw_config_mismatch(source, key, block, "a list of two integers");
    SW_TRY(sw_config_integer(source, key, json_array_get(block, 0), 1, MAX_GROUP, &out->block_rows));
    return sw_config_integer(source, key, json_array_get(block, 1), 1, MAX_GROUP, &out->block_cols);
}

/* Modules left as they are; each method has its own word for them. */
static sw_status read_unconverted(const config_source *source, const json_t *object, sw_arena *arena,
                                  sw_quantization *out)
{
    static const char *const keys[] = {"modules_to_not_convert", "ignored_layers", "ignore",
                                       "llm_int8_skip_modules"};
    for (size_t k = 0; k < SW_COUNT(keys); k++) {
        const json_t *list = sw_config_at(object, keys[k]);
        if (list == NULL)
            continue;
        if (!json_is_array(list))
            return sw_config_mismatch(source, keys[k], list, "a list of strings");
        size_t n = json_array_size(list);
        const char **names = sw_arena_zero(arena, n + 1, sizeof *names);
        if (names == NULL)
            return sw_config_no_memory(source);
        for (size_t i = 0; i < n; i++)
            SW_TRY(sw_config_string(source, keys[k], json_array_get(list, i), arena, &names[i]));
        out->unconverted = names;
        out->n_unconverted = (uint32_t)n;
        return SW_OK;
    }
    return SW_OK;
}

static const char *const bits_keys[] = {"bits", "w_bit", "config_groups.group_0.weights.num_bits", NULL};
static const char *const group_keys[] = {"group_size", "q_group_size",
                                         "config_groups.group_0.weights.group_size", NULL};

static int compare_modules(const void *a, const void *b)
{
    const sw_quantization_module *left = a;
    const sw_quantization_module *right = b;
    return strcmp(left->name, right->name);
}

/* MLX: members that are objects are modules with settings of their own, beside those of the model. */
static sw_status read_modules(const config_source *source, const json_t *object, sw_arena *arena,
                              sw_quantization *out)
{
    json_t *members = (json_t *)object; /* jansson's iteration takes no const */
    sw_quantization_module *modules = sw_arena_zero(arena, json_object_size(object) + 1, sizeof *modules);
    const char *name = NULL;
    json_t *value = NULL;
    uint32_t n = 0;

    if (modules == NULL)
        return sw_config_no_memory(source);
    json_object_foreach(members, name, value)
    {
        if (!json_is_object(value))
            continue;
        sw_quantization_module *m = &modules[n++];
        *m = (sw_quantization_module){.bits = out->bits, .group_size = out->group_size};
        m->name = sw_arena_copy(arena, name, strlen(name));
        if (m->name == NULL)
            return sw_config_no_memory(source);
        SW_TRY(read_integer(source, value, bits_keys, 0, MAX_BITS, &m->bits));
        SW_TRY(read_integer(source, value, group_keys, -1, MAX_GROUP, &m->group_size));
    }
    qsort(modules, n, sizeof *modules, compare_modules);
    out->modules = modules;
    out->n_modules = n;
    return SW_OK;
}

const sw_quantization_module *sw_quantization_module_of(const sw_quantization *quantization,
                                                        const char *module, size_t length)
{
    uint32_t begin = 0;
    uint32_t end = quantization->n_modules;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const sw_quantization_module *m = &quantization->modules[middle];
        int order = strncmp(m->name, module, length);
        if (order == 0 && m->name[length] == '\0')
            return m;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

/*
 * The object that says it. MLX has `quantization`, without a method's name, and writes it a second time as
 * `quantization_config`.
 */
static const json_t *find_object(const config_source *source, const char **key, bool *is_mlx)
{
    *key = "quantization_config";
    *is_mlx = false;
    const json_t *object = sw_config_find(source, *key);
    if (object != NULL && (!json_is_object(object) || sw_config_at(object, "quant_method") != NULL))
        return object;
    const json_t *mlx = sw_config_find(source, "quantization");
    if (mlx == NULL)
        return object;
    *key = "quantization";
    *is_mlx = json_is_object(mlx) && sw_config_at(mlx, "quant_method") == NULL;
    return mlx;
}

/*
 * Are groups taken in the order of a group index? GPTQ says `desc_act`; compressed-tensors says `actorder`,
 * whose other word ("weight", "static") leaves the groups in the order of the columns.
 */
static sw_status read_order(const config_source *source, const json_t *object, sw_quantization *out)
{
    const json_t *desc_act = sw_config_at(object, "desc_act");
    const json_t *order = sw_config_at(object, "config_groups.group_0.weights.actorder");
    const char *word = json_is_string(order) ? json_string_value(order) : "";

    if (desc_act != NULL && !json_is_boolean(desc_act))
        return sw_config_mismatch(source, "desc_act", desc_act, "a boolean");
    out->desc_act = json_is_true(desc_act) || json_is_true(order) || strcmp(word, "group") == 0 ||
                    strcmp(word, "dynamic") == 0;
    return SW_OK;
}

sw_status sw_config_quantization(const config_source *source, sw_arena *arena, sw_quantization *out)
{
    sw_quantization q = {.name = ""};
    const char *key = NULL;
    bool is_mlx = false;
    const json_t *object = find_object(source, &key, &is_mlx);

    *out = q;
    if (object == NULL)
        return SW_OK;
    if (!json_is_object(object))
        return sw_config_mismatch(source, key, object, "an object");
    SW_TRY(sw_config_string(source, "quant_method", sw_config_at(object, "quant_method"), arena, &q.name));
    recognise(&q);
    if (is_mlx)
        q.method = SW_QUANTIZATION_MLX;
    SW_TRY(read_integer(source, object, bits_keys, 0, MAX_BITS, &q.bits));
    SW_TRY(read_integer(source, object, group_keys, -1, MAX_GROUP, &q.group_size));
    if (is_mlx)
        SW_TRY(read_modules(source, object, arena, &q));
    SW_TRY(read_order(source, object, &q));
    SW_TRY(read_block(source, object, &q));
    SW_TRY(read_unconverted(source, object, arena, &q));
    *out = q;
    return SW_OK;
}
