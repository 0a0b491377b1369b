/* Resized cases (resized.h). */
#include "resized.h"

#include "base/status.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 8, GROUPS = 4 };

/* A number under the words that families have for it. */
typedef struct resized_number {
    const char *words[4];
    int value;
} resized_number;

static const resized_number numbers[] = {
    {{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, 24},
    {{"moe_intermediate_size"},                                      8 },
    {{"shared_expert_intermediate_size"},                            16},
    {{"num_local_experts", "num_experts", "n_routed_experts"},       8 },
    {{"n_group"},                                                    4 },
};

static const char *const heads[] = {"num_attention_heads", "n_head", "n_heads"};
static const char *const groups[] = {"num_key_value_heads", "num_kv_heads"};
static const char *const widths[] = {"hidden_size", "n_embd", "d_model"};

/* The number under one of the words; 0: under none. */
static json_int_t number_of(const json_t *config, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n && words[i] != NULL; i++) {
        const json_t *member = json_object_get(config, words[i]);
        if (json_is_integer(member))
            return json_integer_value(member);
    }
    return 0;
}

/* A new number, wherever there is one. */
static void put_number(json_t *config, const char *const *words, size_t n, json_int_t value)
{
    for (size_t i = 0; i < n && words[i] != NULL; i++) {
        if (json_is_integer(json_object_get(config, words[i])))
            (void)json_object_set_new(config, words[i], json_integer(value));
    }
}

static void resize(json_t *config)
{
    json_int_t n_heads = number_of(config, heads, SW_COUNT(heads));
    json_int_t n_groups = number_of(config, groups, SW_COUNT(groups));
    json_int_t width = number_of(config, widths, SW_COUNT(widths));

    if (n_heads == 0 || width == 0)
        fail_msg("a config without heads or width");
    put_number(config, widths, SW_COUNT(widths), width / n_heads * HEADS);
    put_number(config, heads, SW_COUNT(heads), HEADS);
    if (n_groups != 1)
        put_number(config, groups, SW_COUNT(groups), n_groups == n_heads ? HEADS : GROUPS);
    for (size_t i = 0; i < SW_COUNT(numbers); i++)
        put_number(config, numbers[i].words, SW_COUNT(numbers[i].words), numbers[i].value);
}

sw_buffer resized_config(const char *folder)
{
    char path[4096];
    sw_buffer out = {0};
    json_error_t fault;

    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *config = json_load_file(path, 0, &fault);
    if (config == NULL)
        fail_msg("%s: %s", path, fault.text);
    resize(config);
    char *text = json_dumps(config, JSON_COMPACT);
    assert_non_null(text);
    text[strlen(text) - 1] = '\0'; /* the closing brace */
    sw_buffer_printf(&out, "%s", text + 1);
    assert_false(out.failed);
    free(text);
    json_decref(config);
    return out;
}
