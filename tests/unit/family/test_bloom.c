/*
 * BLOOM: a fused projection head by head, and a norm after the embedding.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"word_embeddings.weight",                    "embed vocab"           },
        {"word_embeddings_layernorm.weight",          "norm"                  },
        {"h.#.self_attention.query_key_value.weight", "fused_qkv qkv_per_head"},
        {"h.#.self_attention.query_key_value.bias",   "fused_qkv qkv_per_head"},
        {"h.#.self_attention.dense.weight",           "rowwise heads"         },
        {"h.#.self_attention.dense.bias",             "bias"                  },
        {"h.#.mlp.dense_h_to_4h.bias",                "colwise"               },
        {"h.#.mlp.dense_4h_to_h.weight",              "rowwise"               },
        {"lm_head.weight",                            "lm_head vocab"         },
    };
    (void)state;
    check_family("BloomForCausalLM", "bloom", "bloom", cases, SW_COUNT(cases));
}

static void the_mlp_is_four_times_as_wide(void **state)
{
    static const config_case cases[] = {
        {"h.0.mlp.dense_h_to_4h.weight", "128x32", "colwise"},
        {"lm_head.weight",               NULL,     NULL     },
    };
    (void)state;
    check_config("{\"model_type\": \"bloom\", \"n_embed\": 32, \"n_layer\": 1, \"n_head\": 8, "
                 "\"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

static void the_prefix_transformer_is_recognised(void **state)
{
    static const char pattern[] = "transformer.h.#.self_attention.query_key_value.bias";
    int cut = 0;
    (void)state;
    const sw_family *family = sw_family_find(NULL, "bloom");
    const sw_family_row *row = sw_family_match(family, pattern, sizeof pattern - 1, &cut);
    assert_non_null(row);
    assert_string_equal(row->name, "h.#.self_attention.query_key_value.bias");
    assert_int_equal(cut, sizeof "transformer." - 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_mlp_is_four_times_as_wide),
        cmocka_unit_test(the_prefix_transformer_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
