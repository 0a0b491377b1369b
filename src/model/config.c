/*
 * Reading a config.json (see config.h): parse, find the nested config of the decoder and the family, resolve
 * the spellings in the order family → nested family → common, then fill in what the classes assume.
 */
#include "model/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "model/config_value.h"

enum { MAX_ARENA = 64 << 20 };

static const int64_t MAX_NUMBER = (int64_t)1 << 40; /* no size of a model comes near it */

typedef struct reading {
    config_source source;
    sw_config *config;
    const sw_family *text_family;    /* of the nested config, when it is another than the family */
    bool is_ignored[SW_ATTR_COUNT_]; /* given, but not as a number: no default takes its place */
    bool is_null[SW_ATTR_COUNT_];    /* a key says null: no number that the class assumes takes its place */
    sw_ignored_key **last_ignored;
} reading;

static bool is_in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.';
}

/* Bytes of the string that begins here, with its quotes. */
static size_t string_length(const char *text, size_t length)
{
    size_t n = 1;

    while (n < length && text[n] != '"')
        n += text[n] == '\\' ? 2 : 1;
    return n < length ? n + 1 : length;
}

/*
 * The text with null for the words that Python writes for numbers JSON does not have (time_step_limit: [0.0,
 * Infinity]). No size of a model is one of them.
 */
static void put_standard_text(sw_buffer *out, const char *text, size_t length)
{
    static const char *const words[] = {"Infinity", "-Infinity", "NaN"};
    size_t n = 0;

    for (size_t at = 0; at < length; at += n) {
        bool is_null = false;
        n = 0;
        while (at + n < length && is_in_word(text[at + n]))
            n++;
        for (size_t i = 0; i < SW_COUNT(words); i++)
            is_null = is_null || (n == strlen(words[i]) && memcmp(text + at, words[i], n) == 0);
        if (n == 0)
            n = text[at] == '"' ? string_length(text + at, length - at) : 1;
        sw_buffer_append(out, is_null ? "null" : text + at, is_null ? 4 : n);
    }
}

sw_status sw_config_parse(sw_file_map map, const char *path, json_t **out, sw_error *err)
{
    json_error_t fault;
    if (map.n_bytes > SW_CONFIG_MAX_BYTES)
        return SW_FAIL(err, SW_E_LIMIT, "is this a config.json?", "%s: %zu bytes are more than %d", path,
                       map.n_bytes, SW_CONFIG_MAX_BYTES);
    sw_buffer text SW_AUTO(sw_buffer_clear) = {0};
    put_standard_text(&text, (const char *)map.bytes, map.n_bytes);
    const char *json = sw_buffer_text(&text);
    if (json == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: out of memory", path);
    json_t *root = json_loadb(json, text.length, JSON_REJECT_DUPLICATES, &fault);
    if (root == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "correct the file", "%s: line %d: %s", path, fault.line, fault.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return SW_FAIL(err, SW_E_FORMAT, "a config.json is one JSON object", "%s: line 1: not an object",
                       path);
    }
    *out = root;
    return SW_OK;
}

/* The nested object that holds the decoder's numbers, NULL when there is none. */
static sw_status find_text_config(config_source *source, sw_config *config)
{
    static const char *const usual[] = {"text_config", "llm_config", "language_config",
                                        "thinker_config.text_config", NULL};
    const char *const *lists[] = {config->family == NULL ? NULL : config->family->text_prefixes, usual};
    for (size_t i = 0; i < SW_COUNT(lists); i++) {
        for (const char *const *key = lists[i]; key != NULL && *key != NULL; key++) {
            const json_t *value = sw_config_at(source->root, *key);
            if (value == NULL)
                continue;
            if (!json_is_object(value))
                return sw_config_mismatch(source, *key, value, "an object");
            source->text = value;
            config->text_key = *key;
            return SW_OK;
        }
    }
    return SW_OK;
}

/* architectures[0] and model_type of one object, "" when absent. */
static sw_status read_names(reading *r, const json_t *object, const char **architecture,
                            const char **model_type)
{
    const json_t *list = sw_config_at(object, "architectures");
    sw_arena *arena = r->config->arena;
    if (list != NULL && !json_is_array(list))
        return sw_config_mismatch(&r->source, "architectures", list, "a list of strings");
    SW_TRY(sw_config_string(&r->source, "architectures", json_array_get(list, 0), arena, architecture));
    return sw_config_string(&r->source, "model_type", sw_config_at(object, "model_type"), arena, model_type);
}

static sw_status find_family(reading *r)
{
    const char *architecture = "";
    const char *model_type = "";
    sw_config *config = r->config;
    SW_TRY(read_names(r, r->source.root, &config->architecture, &config->model_type));
    config->family = sw_family_find(config->architecture, config->model_type);
    SW_TRY(find_text_config(&r->source, config));
    config->has_text_config = r->source.text != NULL;
    if (!config->has_text_config)
        return SW_OK;
    SW_TRY(read_names(r, r->source.text, &architecture, &model_type));
    r->text_family = sw_family_find(architecture, model_type);
    if (config->family == NULL) {
        config->family = r->text_family;
        config->is_family_nested = r->text_family != NULL;
    }
    return SW_OK;
}

static sw_status read_dtype(reading *r)
{
    static const char *const keys[] = {"torch_dtype", "dtype"};
    static const struct {
        const char *word;
        sw_dtype dtype;
    } words[] = {
        {"bfloat16",      SW_DTYPE_BF16   },
        {"float16",       SW_DTYPE_F16    },
        {"half",          SW_DTYPE_F16    },
        {"float32",       SW_DTYPE_F32    },
        {"float",         SW_DTYPE_F32    },
        {"float64",       SW_DTYPE_F64    },
        {"float8_e4m3fn", SW_DTYPE_F8_E4M3},
    };
    sw_config *config = r->config;
    const json_t *value = NULL;
    const char *key = NULL;
    for (size_t i = 0; i < SW_COUNT(keys) && value == NULL; i++) {
        key = keys[i];
        value = sw_config_find(&r->source, key);
    }
    SW_TRY(sw_config_string(&r->source, key, value, config->arena, &config->torch_dtype));
    const char *word =
        strncmp(config->torch_dtype, "torch.", 6) == 0 ? config->torch_dtype + 6 : config->torch_dtype;
    config->dtype = config->family == NULL ? SW_DTYPE_UNKNOWN : config->family->default_dtype;
    if (config->dtype == SW_DTYPE_UNKNOWN)
        config->dtype = SW_DTYPE_F32;
    for (size_t i = 0; i < SW_COUNT(words); i++) {
        if (strcmp(words[i].word, word) == 0)
            config->dtype = words[i].dtype;
    }
    return SW_OK;
}

/* What every plan rests on, or what chooses between layouts: a wrong kind of value is a fault of the file. */
static bool must_be_right(sw_attr attr)
{
    static const sw_attr needed[] = {SW_ATTR_HIDDEN,      SW_ATTR_LAYERS,      SW_ATTR_TIED,
                                     SW_ATTR_MULTI_QUERY, SW_ATTR_NEW_DECODER, SW_ATTR_PARALLEL_ATTN};

    for (size_t i = 0; i < SW_COUNT(needed); i++) {
        if (needed[i] == attr)
            return true;
    }
    return false;
}

/* What a key of the attribute holds, in words. */
static const char *kind_of(sw_attr attr)
{
    static const sw_attr flags[] = {SW_ATTR_TIED,          SW_ATTR_ATTENTION_BIAS, SW_ATTR_MLP_BIAS,
                                    SW_ATTR_QK_NORM,       SW_ATTR_MULTI_QUERY,    SW_ATTR_NEW_DECODER,
                                    SW_ATTR_PARALLEL_ATTN, SW_ATTR_CONV_BIAS,      SW_ATTR_NO_BIAS,
                                    SW_ATTR_ALIBI,         SW_ATTR_NORM_BEFORE};

    for (size_t i = 0; i < SW_COUNT(flags); i++) {
        if (flags[i] == attr)
            return "true or false";
    }
    return "an integer";
}

/* A list a layer, a word, a fraction: whoever needs the attribute will say that it is not set. */
static sw_status ignore_key(reading *r, const char *key, const json_t *value, sw_attr attr)
{
    char text[48];
    sw_ignored_key *ignored = sw_arena_zero(r->config->arena, 1, sizeof *ignored);

    sw_config_value_text(value, text, sizeof text);
    if (ignored == NULL)
        return sw_config_no_memory(&r->source);
    ignored->text = sw_arena_format(r->config->arena, "key \"%s\" is %s (%s), not %s", key,
                                    sw_config_kind(value), text, kind_of(attr));
    *r->last_ignored = ignored;
    r->last_ignored = &ignored->next;
    return ignored->text == NULL ? sw_config_no_memory(&r->source) : SW_OK;
}

/* One attribute, from the key that spells it; unchanged when `object` has no such key. */
static sw_status read_spelling(reading *r, const sw_spelling *spelling, const json_t *object)
{
    sw_attributes *a = &r->config->attributes;
    sw_attr attr = spelling->attr;
    const char *word = strchr(spelling->key, '=');
    char key[64];
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(spelling->key, "="), spelling->key);
    const json_t *value = sw_config_at(object, key);
    r->is_null[attr] = r->is_null[attr] || sw_config_is_null(object, key);
    if (value == NULL || (json_is_string(value) && strcmp(json_string_value(value), "auto") == 0))
        return SW_OK;
    if (word != NULL) {
        const char *text = NULL;
        SW_TRY(sw_config_string(&r->source, key, value, r->config->arena, &text));
        a->value[attr] = strcmp(text, word + 1) == 0;
    } else if (!must_be_right(attr) && !sw_config_is_whole(value, &a->value[attr])) {
        r->is_ignored[attr] = true;
        return ignore_key(r, key, value, attr);
    } else if (!sw_config_is_whole(value, &a->value[attr])) {
        return sw_config_mismatch(&r->source, key, value, kind_of(attr));
    } else {
        SW_TRY(sw_config_integer(&r->source, key, value, 0, MAX_NUMBER, &a->value[attr]));
    }
    a->is_set[attr] = true;
    a->is_stated[attr] = true;
    return SW_OK;
}

/* Attributes that have no value yet and that a key of `object` gives. */
static sw_status read_spellings(reading *r, const sw_spelling *spelling, const json_t *object)
{
    for (; spelling != NULL && spelling->key != NULL; spelling++) {
        if (!r->config->attributes.is_set[spelling->attr])
            SW_TRY(read_spelling(r, spelling, object));
    }
    return SW_OK;
}

static bool is_number(const char *expression)
{
    return expression[strspn(expression, "0123456789")] == '\0';
}

/* What a class assumes where no key says it. null is said: without a window, as many heads as there are. */
static void fill_in(reading *r, const sw_default *entry)
{
    sw_attributes *a = &r->config->attributes;
    bool is_of_class = entry != sw_common_defaults;

    for (; entry != NULL && entry->attr != SW_ATTR_NONE; entry++) {
        int64_t value = 0;
        bool is_refused = is_of_class && r->is_null[entry->attr] && is_number(entry->value);
        if (a->is_set[entry->attr] || r->is_ignored[entry->attr] || is_refused ||
            sw_expression(entry->value, a, 0, &value, NULL) != SW_OK)
            continue; /* a value that rests on an unset one stays unset too */
        a->value[entry->attr] = value;
        a->is_set[entry->attr] = true;
    }
}

/* What a class computes itself, whatever stands under the key: the multi-query Falcon has one key head. */
static void force(sw_attributes *a, const sw_default *entry)
{
    for (; entry != NULL && entry->attr != SW_ATTR_NONE; entry++)
        a->is_set[entry->attr] = sw_expression(entry->value, a, 0, &a->value[entry->attr], NULL) == SW_OK;
}

static sw_status read_attributes(reading *r)
{
    const sw_family *family = r->config->family;
    const sw_family *text_family = r->text_family;
    sw_attributes *a = &r->config->attributes;
    const sw_spelling *spellings[] = {family == NULL ? NULL : family->spellings,
                                      text_family == NULL ? NULL : text_family->spellings,
                                      sw_common_spellings};
    const json_t *objects[] = {r->source.text, r->source.root};
    for (size_t o = 0; o < SW_COUNT(objects); o++) {
        for (size_t s = 0; s < SW_COUNT(spellings) && objects[o] != NULL; s++)
            SW_TRY(read_spellings(r, spellings[s], objects[o]));
    }
    if (json_is_false(sw_config_find(&r->source, "use_sliding_window")))
        a->is_set[SW_ATTR_WINDOW] = false; /* Qwen2 keeps a width that it does not use */
    a->value[SW_ATTR_MXFP4] = r->config->quantization.method == SW_QUANTIZATION_MXFP4;
    a->is_set[SW_ATTR_MXFP4] = true;
    if (r->source.text != NULL) {
        fill_in(r, text_family == NULL ? NULL : text_family->class_sizes);
        fill_in(r, family == NULL ? NULL : family->class_sizes);
    }
    fill_in(r, family == NULL ? NULL : family->defaults);
    fill_in(r, text_family == NULL ? NULL : text_family->defaults);
    fill_in(r, sw_common_defaults);
    force(a, family == NULL ? NULL : family->forced);
    return SW_OK;
}

static sw_status read_all(reading *r)
{
    sw_config *config = r->config;
    SW_TRY(find_family(r));
    SW_TRY(read_dtype(r));
    SW_TRY(sw_config_quantization(&r->source, config->arena, &config->quantization));
    SW_TRY(read_attributes(r));
    SW_TRY(sw_config_settings(&r->source, config->family == NULL ? NULL : config->family->decoder,
                              config->arena, &config->settings));
    return sw_config_layers(&r->source, config->arena, &config->attributes);
}

sw_status sw_config_read(sw_config *out, sw_file_map map, const char *path, sw_error *err)
{
    sw_config config = {.arena = NULL};
    json_t *root = NULL;
    SW_TRY(sw_config_parse(map, path, &root, err));
    config.arena = sw_arena_create(MAX_ARENA);
    reading r = {
        .source = {.path = path, .root = root, .err = err},
          .config = &config
    };
    r.last_ignored = &config.ignored;
    sw_status status = config.arena == NULL ? sw_config_no_memory(&r.source) : read_all(&r);
    json_decref(root);
    if (status != SW_OK) {
        sw_config_clear(&config);
        return status;
    }
    *out = config;
    return SW_OK;
}

void sw_config_clear(sw_config *config)
{
    sw_arena_destroy(config->arena);
    *config = (sw_config){.arena = NULL};
}
