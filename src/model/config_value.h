/*
 * Typed access to the values of a parsed config.json, with failures that name the file and the key. Shared by
 * the files that read a config (config.c, config_layers.c, config_quantization.c, config_edit.c) and by
 * nothing else. JSON null counts as absent everywhere.
 */
#ifndef SW_MODEL_CONFIG_VALUE_H
#define SW_MODEL_CONFIG_VALUE_H

#include <jansson.h>

#include "model/config.h"

/* The objects of a config: the decoder's own, where nested, and the outermost. */
typedef struct config_source {
    const char *path;
    const json_t *root;
    const json_t *text; /* NULL when the decoder's numbers are not nested */
    sw_error *err;
} config_source;

/* The document of a config.json, an object; give it to json_decref(). */
sw_status sw_config_parse(sw_file_map map, const char *path, json_t **out, sw_error *err);

/* Value of a key ("a.b" looks into nested objects), NULL when it is absent or null. */
const json_t *sw_config_at(const json_t *object, const char *key);

/* Is there null at the key? */
bool sw_config_is_null(const json_t *object, const char *key);

/* The same, in the decoder's object first, then in the outermost. */
const json_t *sw_config_find(const config_source *source, const char *key);

/* Is it a whole number, such as 2, 2.0 or true? */
bool sw_config_is_whole(const json_t *value, int64_t *number);

/* An integer from `least` to `most`; booleans are 0 and 1, and 2.0 is 2. */
sw_status sw_config_integer(const config_source *source, const char *key, const json_t *value, int64_t least,
                            int64_t most, int64_t *out);

/* A copy of a string; "" for NULL. */
sw_status sw_config_string(const config_source *source, const char *key, const json_t *value, sw_arena *arena,
                           const char **out);

/* The beginning of a value as JSON, into `text`. */
void sw_config_value_text(const json_t *value, char *text, size_t capacity);

/* "a list", "a string": what a value is. */
const char *sw_config_kind(const json_t *value);

/* SW_E_FORMAT: PATH: key "KEY" is a string, EXPECTED is wanted. */
sw_status sw_config_mismatch(const config_source *source, const char *key, const json_t *value,
                             const char *expected);

sw_status sw_config_no_memory(const config_source *source);

/* config_quantization.c: `quantization_config`, or MLX's `quantization`. */
sw_status sw_config_quantization(const config_source *source, sw_arena *arena, sw_quantization *out);

/* config_layers.c: kinds of layers and layers listed as dense; needs the other attributes. */
sw_status sw_config_layers(const config_source *source, sw_arena *arena, sw_attributes *attributes);

/* config_settings.c: fractions, words and lists; the decoder may be NULL. */
sw_status sw_config_settings(const config_source *source, const sw_decoder *decoder, sw_arena *arena,
                             sw_settings *out);

#endif
