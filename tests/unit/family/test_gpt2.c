/*
 * GPT-2: transposed linears, a stacked projection, and a mask called bias.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"wte.weight",             "embed vocab"                 },
        {"wpe.weight",             "replicated position"         },
        {"h.#.attn.bias",          "skip buffer optional"        },
        {"h.#.attn.masked_bias",   "skip buffer optional"        },
        {"h.#.attn.c_attn.weight", "fused_qkv qkv_stacked conv1d"},
        {"h.#.attn.c_attn.bias",   "fused_qkv qkv_stacked conv1d"},
        {"h.#.attn.c_proj.weight", "rowwise heads conv1d"        },
        {"h.#.attn.c_proj.bias",   "bias conv1d"                 },
        {"h.#.mlp.c_fc.weight",    "colwise conv1d"              },
        {"h.#.mlp.c_fc.bias",      "colwise conv1d"              },
        {"h.#.mlp.c_proj.weight",  "rowwise conv1d"              },
        {"ln_f.bias",              "norm"                        },
        {"lm_head.weight",         "lm_head vocab"               },
    };
    (void)state;
    check_family("GPT2LMHeadModel", "gpt2", "gpt2", cases, SW_COUNT(cases));
}

static void matrices_are_stored_input_first(void **state)
{
    static const config_case cases[] = {
        {"h.0.attn.c_attn.weight", "32x96",  "fused_qkv qkv_stacked conv1d"},
        {"h.0.mlp.c_fc.weight",    "32x128", "colwise conv1d"              },
        {"h.0.mlp.c_proj.weight",  "128x32", "rowwise conv1d"              },
        {"h.0.attn.bias",          NULL,     NULL                          },
        {"lm_head.weight",         NULL,     NULL                          },
    };
    (void)state;
    check_config("{\"model_type\": \"gpt2\", \"n_embd\": 32, \"n_layer\": 1, \"n_head\": 8, "
                 "\"n_positions\": 16, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

static void an_untied_head_is_generated(void **state)
{
    static const config_case cases[] = {
        {"lm_head.weight", "100x32", "lm_head vocab"},
    };
    (void)state;
    check_config("{\"model_type\": \"gpt2\", \"n_embd\": 32, \"n_layer\": 1, \"n_head\": 8, "
                 "\"n_positions\": 16, \"vocab_size\": 100, "
                 "\"tie_word_embeddings\": false}",
                 cases, SW_COUNT(cases));
}

static void the_prefix_transformer_is_recognised(void **state)
{
    static const char pattern[] = "transformer.h.#.attn.bias";
    int cut = 0;
    (void)state;
    const sw_family *family = sw_family_find(NULL, "gpt2");
    const sw_family_row *row = sw_family_match(family, pattern, sizeof pattern - 1, &cut);
    assert_non_null(row);
    assert_string_equal(row->name, "h.#.attn.bias");
    assert_int_equal(cut, sizeof "transformer." - 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(matrices_are_stored_input_first),
        cmocka_unit_test(an_untied_head_is_generated),
        cmocka_unit_test(the_prefix_transformer_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
