/*
 * Editing a config.json (see config_edit.h): parse, change what is asked for in the decoder's object and in
 * the outermost, write. Numbers that are not whole are written by their shortest text that reads the same.
 */
#include "model/config_edit.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "io/json_write.h"
#include "model/config_value.h"

/* One edit under way. */
typedef struct editing {
    const char *path;
    const sw_config *config;
    const sw_config_edit *edit;
    json_t *objects[2]; /* the decoder's, where nested, and the outermost; NULL: none */
    uint32_t n_changes;
    sw_error *err;
} editing;

static void drop_json(json_t **json)
{
    json_decref(*json);
}

static sw_status no_memory(const char *path, sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory to edit it", path);
}

/* The object that holds the last name of a dotted key, which *name gets; NULL: there is none. */
static json_t *holder_of(json_t *object, const char *key, const char **name)
{
    for (const char *dot = strchr(key, '.'); dot != NULL && object != NULL; dot = strchr(key, '.')) {
        char first[64];
        size_t length = (size_t)(dot - key);
        if (length >= sizeof first)
            return NULL;
        memcpy(first, key, length);
        first[length] = '\0';
        object = json_object_get(object, first);
        key = dot + 1;
    }
    *name = key;
    return json_is_object(object) ? object : NULL;
}

/* The value of a key that can be changed in place; NULL when there is none. */
static json_t *value_at(json_t *object, const char *key)
{
    const char *name = NULL;
    json_t *holder = holder_of(object, key, &name);
    json_t *value = holder == NULL ? NULL : json_object_get(holder, name);

    return json_is_null(value) ? NULL : value;
}

/* Set a key to `value`, which is taken over. */
static sw_status set(editing *e, json_t *object, const char *key, json_t *value)
{
    const char *name = NULL;
    json_t *holder = holder_of(object, key, &name);

    if (holder == NULL || json_object_set_new(holder, name, value) != 0)
        return no_memory(e->path, e->err);
    e->n_changes++;
    return SW_OK;
}

/* ---- layers ---- */

/* Lists with an entry a layer. */
static const char *const lists_by_layer[] = {"layer_types", "layers_block_type", "attn_type_list",
                                             "attention_layers", "no_rope_layers"};

/* Lists of numbers of layers, and the number of the first layer in them. */
static const struct {
    const char *key;
    json_int_t first;
} lists_of_layers[] = {
    {"mlp_only_layers",                     0},
    {"moe_layers",                          0},
    {"linear_attn_config.kda_layers",       1},
    {"linear_attn_config.full_attn_layers", 1},
};

static sw_status cut_list(editing *e, const char *key, json_t *list, uint32_t n)
{
    size_t size = json_array_size(list);

    if (size < n)
        return SW_FAIL(e->err, SW_E_FORMAT, "give fewer layers, or lengthen the list in the config",
                       "%s: key \"%s\" has %zu entries for %" PRIu32 " layers", e->path, key, size, n);
    for (; size > n; size--) {
        (void)json_array_remove(list, size - 1);
        e->n_changes++;
    }
    return SW_OK;
}

static void drop_numbers(editing *e, json_t *list, json_int_t end)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        if (json_integer_value(json_array_get(list, i)) < end)
            continue;
        (void)json_array_remove(list, i);
        e->n_changes++;
    }
}

/* Up to `n` words of what `times` repeats of a pattern begin with. */
static bool repeat(json_t *words, json_t *pattern, json_int_t times, uint32_t n)
{
    bool is_ok = true;

    if (json_array_size(pattern) == 0)
        return true;
    for (json_int_t t = 0; t < times && json_array_size(words) < n && is_ok; t++)
        is_ok = json_array_extend(words, pattern) == 0;
    return is_ok;
}

/* GPT-Neo: [[["global", "local"], 12], ...] is a pattern and how often it stands. One of all layers then. */
static sw_status cut_patterns(editing *e, json_t *object, uint32_t n)
{
    static const char key[] = "attention_types";
    const json_t *types = json_object_get(object, key);
    json_t *words SW_AUTO(drop_json) = json_array();

    if (!json_is_array(types))
        return SW_OK;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const json_t *item = json_array_get(types, i);
        if (words == NULL ||
            !repeat(words, json_array_get(item, 0), json_integer_value(json_array_get(item, 1)), n))
            return no_memory(e->path, e->err);
    }
    SW_TRY(cut_list(e, key, words, n));
    json_t *all = json_pack("[[O, i]]", words, 1);
    return all == NULL ? no_memory(e->path, e->err) : set(e, object, key, all);
}

static sw_status edit_lists(editing *e, json_t *object, uint32_t n)
{
    for (size_t i = 0; i < SW_COUNT(lists_by_layer); i++) {
        json_t *list = value_at(object, lists_by_layer[i]);
        if (json_is_array(list))
            SW_TRY(cut_list(e, lists_by_layer[i], list, n));
    }
    for (size_t i = 0; i < SW_COUNT(lists_of_layers); i++)
        drop_numbers(e, value_at(object, lists_of_layers[i].key), lists_of_layers[i].first + (json_int_t)n);
    return cut_patterns(e, object, n);
}

/* Every spelling that the object has, since another program may read another one. */
static sw_status edit_spellings(editing *e, json_t *object, uint32_t n, bool *is_found)
{
    const sw_family *family = e->config->family;
    const sw_spelling *lists[] = {family == NULL ? NULL : family->spellings, sw_common_spellings};

    for (size_t i = 0; i < SW_COUNT(lists); i++) {
        for (const sw_spelling *s = lists[i]; s != NULL && s->key != NULL; s++) {
            const json_t *value = s->attr == SW_ATTR_LAYERS ? value_at(object, s->key) : NULL;
            if (!json_is_integer(value))
                continue;
            *is_found = true;
            if (json_integer_value(value) != (json_int_t)n)
                SW_TRY(set(e, object, s->key, json_integer((json_int_t)n)));
        }
    }
    return SW_OK;
}

static sw_status edit_layers(editing *e)
{
    uint32_t n = e->edit->layers;
    bool is_found = false;

    if (n == 0)
        return SW_OK;
    for (size_t i = 0; i < SW_COUNT(e->objects); i++) {
        if (e->objects[i] == NULL)
            continue;
        SW_TRY(edit_spellings(e, e->objects[i], n, &is_found));
        SW_TRY(edit_lists(e, e->objects[i], n));
    }
    if (is_found)
        return SW_OK;
    json_t *object = e->objects[0] != NULL ? e->objects[0] : e->objects[1];
    return set(e, object, "num_hidden_layers", json_integer((json_int_t)n));
}

/* ---- dtype and quantisation ---- */

static const char *word_of(sw_dtype dtype)
{
    if (dtype == SW_DTYPE_F32)
        return "float32";
    return dtype == SW_DTYPE_F16 ? "float16" : "bfloat16";
}

static sw_status edit_dtype(editing *e)
{
    static const char *const keys[] = {"torch_dtype", "dtype"};
    bool is_found = false;

    if (e->edit->dtype == SW_DTYPE_UNKNOWN)
        return SW_OK;
    const char *word = word_of(e->edit->dtype);
    for (size_t i = 0; i < SW_COUNT(e->objects); i++) {
        for (size_t k = 0; k < SW_COUNT(keys) && e->objects[i] != NULL; k++) {
            const char *there = json_string_value(json_object_get(e->objects[i], keys[k]));
            if (there == NULL)
                continue;
            is_found = true;
            if (strcmp(there, word) != 0)
                SW_TRY(set(e, e->objects[i], keys[k], json_string(word)));
        }
    }
    return is_found ? SW_OK : set(e, e->objects[1], "torch_dtype", json_string(word));
}

static void edit_quantization(editing *e)
{
    static const char *const keys[] = {"quantization_config", "quantization"};

    for (size_t i = 0; i < SW_COUNT(e->objects) && e->edit->drops_quantization; i++) {
        for (size_t k = 0; k < SW_COUNT(keys); k++)
            e->n_changes += json_object_del(e->objects[i], keys[k]) == 0;
    }
}

/* ---- writing ---- */

/* The shortest text that reads as the same number. */
static void put_real(sw_json_writer *w, const json_t *value)
{
    char text[64];
    size_t length = 0;

    for (size_t digits = 1; digits <= 17; digits++) {
        length = json_dumpb(value, text, sizeof text, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *again SW_AUTO(drop_json) =
            length > sizeof text ? NULL : json_loadb(text, length, JSON_DECODE_ANY, NULL);
        if (json_is_real(again) && json_equal(again, value))
            break;
    }
    sw_json_put_raw(w, text, length > sizeof text ? 0 : length);
}

static bool is_flat(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (json_is_object(value) || json_is_array(value))
            return false;
    }
    return true;
}

static void put_value(sw_json_writer *w, json_t *value);

static void put_object(sw_json_writer *w, json_t *object)
{
    sw_json_begin_object(w);
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        sw_json_key(w, json_object_iter_key(at));
        put_value(w, json_object_iter_value(at));
    }
    sw_json_end_object(w);
}

static void put_array(sw_json_writer *w, const json_t *list)
{
    if (is_flat(list))
        sw_json_inline(w);
    sw_json_begin_array(w);
    for (size_t i = 0; i < json_array_size(list); i++)
        put_value(w, json_array_get(list, i));
    sw_json_end_array(w);
}

static void put_value(sw_json_writer *w, json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(w, value);
        return;
    case JSON_ARRAY:
        put_array(w, value);
        return;
    case JSON_STRING:
        sw_json_put_string_n(w, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        sw_json_put_i64(w, json_integer_value(value));
        return;
    case JSON_REAL:
        put_real(w, value);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        sw_json_put_bool(w, json_is_true(value));
        return;
    case JSON_NULL:
        sw_json_put_null(w);
        return;
    }
}

sw_status sw_config_edited(sw_buffer *out, sw_file_map map, const char *path, const sw_config *config,
                           const sw_config_edit *edit, sw_error *err)
{
    json_t *root SW_AUTO(drop_json) = NULL;
    sw_json_writer w;

    SW_TRY(sw_config_parse(map, path, &root, err));
    editing e = {.path = path, .config = config, .edit = edit, .err = err};
    e.objects[0] = config->text_key == NULL ? NULL : value_at(root, config->text_key);
    e.objects[1] = root;
    SW_TRY(edit_layers(&e));
    SW_TRY(edit_dtype(&e));
    edit_quantization(&e);
    if (e.n_changes == 0) {
        sw_buffer_append(out, map.bytes, map.n_bytes);
    } else {
        sw_json_write_init(&w, out, false);
        put_value(&w, root);
        sw_buffer_putc(out, '\n');
    }
    return out->failed ? no_memory(path, err) : SW_OK;
}

/* ---- asking ---- */

sw_status sw_config_deviation(double *out, sw_file_map map, const char *path, const sw_config *config,
                              sw_error *err)
{
    static const char *const keys[] = {"initializer_range", "init_std"};
    json_t *root SW_AUTO(drop_json) = NULL;

    SW_TRY(sw_config_parse(map, path, &root, err));
    const config_source source = {
        .path = path,
        .root = root,
        .text = config->text_key == NULL ? NULL : sw_config_at(root, config->text_key),
        .err = err,
    };
    for (size_t i = 0; i < SW_COUNT(keys); i++) {
        const json_t *value = sw_config_find(&source, keys[i]);
        if (value == NULL)
            continue;
        if (!json_is_number(value))
            return sw_config_mismatch(&source, keys[i], value, "a number");
        double deviation = json_number_value(value);
        if (deviation < 0.0)
            return SW_FAIL(err, SW_E_FORMAT, "correct the config",
                           "%s: key \"%s\" is %g, a deviation is not below 0", path, keys[i], deviation);
        *out = deviation;
        return SW_OK;
    }
    return SW_OK;
}
