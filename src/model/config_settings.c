/*
 * What a config says beside sizes (family/settings.h). Nothing is refused here: a value of another kind is
 * noted, and whoever runs the model says so.
 */
#include "model/config_value.h"

#include <string.h>

#include "base/status.h"

enum { MAX_LIST = 4096, TEXT = 64 };

static sw_status read_list(const config_source *source, const json_t *list, sw_arena *arena,
                           sw_setting_value *out)
{
    size_t n = json_array_size(list);
    double *values = NULL;

    out->is_odd = !json_is_array(list) || n > MAX_LIST;
    if (out->is_odd || n == 0)
        return SW_OK;
    values = sw_arena_zero(arena, n, sizeof *values);
    if (values == NULL)
        return sw_config_no_memory(source);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        out->is_odd = out->is_odd || !json_is_number(value);
        values[i] = json_number_value(value);
    }
    out->list = values;
    out->n_list = (uint32_t)n;
    return SW_OK;
}

static sw_status read_value(const config_source *source, const sw_setting_spelling *spelling,
                            const json_t *value, sw_arena *arena, sw_setting_value *out)
{
    char text[TEXT];

    out->is_set = true;
    out->key = spelling->key;
    switch (sw_setting_kind_of(spelling->setting)) {
    case SW_KIND_WORD:
        out->is_odd = !json_is_string(value);
        break;
    case SW_KIND_LIST:
        SW_TRY(read_list(source, value, arena, out));
        break;
    case SW_KIND_NUMBER:
        out->is_odd = !json_is_number(value) && !json_is_boolean(value);
        out->number = json_is_boolean(value) ? (double)json_is_true(value) : json_number_value(value);
        break;
    }
    sw_config_value_text(value, text, sizeof text);
    const char *word = json_is_string(value) ? json_string_value(value) : text;
    out->text = sw_arena_copy(arena, word, strlen(word));
    return out->text == NULL ? sw_config_no_memory(source) : SW_OK;
}

static sw_status read_spellings(const config_source *source, const sw_setting_spelling *spelling,
                                const json_t *object, sw_arena *arena, sw_settings *out)
{
    for (; spelling != NULL && spelling->key != NULL; spelling++) {
        sw_setting_value *value = &out->value[spelling->setting];
        const json_t *given = value->is_set ? NULL : sw_config_at(object, spelling->key);
        value->is_null = value->is_null || (sw_setting_kind_of(spelling->setting) == SW_KIND_NUMBER &&
                                            sw_config_is_null(object, spelling->key));
        if (given != NULL)
            SW_TRY(read_value(source, spelling, given, arena, value));
    }
    return SW_OK;
}

static void fill_in(sw_settings *out, const sw_setting_default *entry)
{
    bool is_of_class = entry != sw_common_setting_defaults;

    for (; entry != NULL && entry->setting != SW_SET_NONE; entry++) {
        sw_setting_value *value = &out->value[entry->setting];
        if (!value->is_set && !(value->is_null && is_of_class))
            *value = (sw_setting_value){.number = entry->number, .text = entry->word, .is_set = true};
    }
}

sw_status sw_config_settings(const config_source *source, const sw_decoder *decoder, sw_arena *arena,
                             sw_settings *out)
{
    const json_t *objects[] = {source->text, source->root};
    const sw_setting_spelling *spellings[] = {decoder == NULL ? NULL : decoder->spellings,
                                              sw_common_setting_spellings};

    for (size_t o = 0; o < SW_COUNT(objects); o++) {
        for (size_t s = 0; s < SW_COUNT(spellings) && objects[o] != NULL; s++)
            SW_TRY(read_spellings(source, spellings[s], objects[o], arena, out));
    }
    fill_in(out, decoder == NULL ? NULL : decoder->defaults);
    fill_in(out, sw_common_setting_defaults);
    return SW_OK;
}
