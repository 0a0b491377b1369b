/*
 * What a family's table makes of a small config: shapes that are generated, and the row that holds for a name
 * in its layer (a table may have several rows of one name, told apart by the config or the layer).
 */
#ifndef SW_TEST_FAMILY_CONFIG_H
#define SW_TEST_FAMILY_CONFIG_H

#include <stdio.h>
#include <stdlib.h>

#include "corpus.h"
#include "family_case.h"
#include "model/generate.h"

typedef struct config_case {
    const char *name;  /* a parameter's, with numbers */
    const char *shape; /* "48x16"; NULL: not generated */
    const char *words; /* of the row that holds, see family_case_words(); NULL when shape is */
} config_case;

static inline void shape_text(char *out, size_t capacity, const sw_shape *shape)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < shape->n_dims && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%llu", i == 0 ? "" : "x",
                                 (unsigned long long)shape->dims[i]);
}

/* The layer in a name: its first segment of digits, 0 without one. */
static inline int64_t layer_of(const char *name)
{
    for (const char *at = name; at != NULL; at = strchr(at, '.')) {
        at += *at == '.';
        if (*at >= '0' && *at <= '9')
            return strtoll(at, NULL, 10);
    }
    return 0;
}

static inline void check_one(const sw_config *config, const sw_tensor_list *list, const config_case *c)
{
    char text[256];
    const sw_tensor_entry *entry = sw_tensor_list_find(list, c->name, strlen(c->name));
    if (c->shape == NULL) {
        if (entry != NULL)
            fail_msg("%s is generated", c->name);
        return;
    }
    if (entry == NULL)
        fail_msg("%s is not generated", c->name);
    shape_text(text, sizeof text, entry->shape);
    if (strcmp(text, c->shape) != 0)
        fail_msg("%s is generated as %s, not %s", c->name, text, c->shape);
    size_t length = corpus_pattern(c->name, text, sizeof text);
    const sw_family_row *row = sw_family_match(config->family, text, length, NULL);
    assert_non_null(row);
    sw_buffer words = {0};
    family_case_words(sw_family_row_for(config->family, row, &config->attributes, layer_of(c->name)), &words);
    if (strcmp(sw_buffer_text(&words), c->words) != 0)
        fail_msg("%s is \"%s\"", c->name, sw_buffer_text(&words));
    sw_buffer_clear(&words);
}

static inline void check_config(const char *json, const config_case *cases, size_t n_cases)
{
    sw_config config = {0};
    sw_tensor_list list = {0};
    sw_error err = {0};
    sw_file_map map = sw_file_map_of(json, strlen(json));
    if (sw_config_read(&config, map, "config.json", &err) != SW_OK ||
        sw_tensor_list_init(&list, (size_t)1 << 26, &err) != SW_OK)
        fail_msg("%s", err.what);
    if (sw_generate_tensors(&list, config.family, &config, &err) != SW_OK)
        fail_msg("%s", err.what);
    for (size_t i = 0; i < n_cases; i++)
        check_one(&config, &list, &cases[i]);
    sw_tensor_list_clear(&list);
    sw_config_clear(&config);
}

#endif
