/*
 * Falcon: one name, three layouts, chosen by two flags of which one may be stale.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.word_embeddings.weight",          "embed vocab"  },
        {"transformer.h.#.self_attention.dense.weight", "rowwise heads"},
        {"transformer.h.#.mlp.dense_h_to_4h.weight",    "colwise"      },
        {"transformer.h.#.mlp.dense_4h_to_h.weight",    "rowwise"      },
        {"transformer.h.#.ln_attn.weight",              "norm"         },
        {"transformer.h.#.input_layernorm.bias",        "norm"         },
        {"lm_head.weight",                              "lm_head vocab"},
    };
    (void)state;
    check_family("FalconForCausalLM", "falcon", "falcon", cases, SW_COUNT(cases));
}

static void the_early_model_goes_head_by_head(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.self_attention.query_key_value.weight", "48x16", "fused_qkv qkv_per_head"},
        {"transformer.h.0.self_attention.query_key_value.bias",   "48",    "fused_qkv qkv_per_head"},
        {"transformer.h.0.post_attention_layernorm.weight",       "16",    "norm"                  },
        {"transformer.h.0.ln_attn.weight",                        NULL,    NULL                    },
    };
    (void)state;
    check_config("{\"model_type\": \"falcon\", \"num_hidden_layers\": 1, \"vocab_size\": 100, "
                 "\"hidden_size\": 16, \"num_attention_heads\": 4, \"multi_query\": false, "
                 "\"new_decoder_architecture\": false, \"parallel_attn\": false, "
                 "\"bias\": true}",
                 cases, SW_COUNT(cases));
}

static void multi_query_stacks_all_queries_one_key_and_one_value(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.self_attention.query_key_value.weight", "24x16", "fused_qkv qkv_stacked"},
        {"transformer.h.0.self_attention.query_key_value.bias",   NULL,    NULL                   },
        {"transformer.h.0.input_layernorm.weight",                "16",    "norm"                 },
        {"transformer.h.0.post_attention_layernorm.weight",       NULL,    NULL                   },
    };
    (void)state;
    check_config("{\"model_type\": \"falcon\", \"num_hidden_layers\": 1, \"vocab_size\": 100, "
                 "\"hidden_size\": 16, \"num_attention_heads\": 4, \"multi_query\": true}",
                 cases, SW_COUNT(cases));
}

static void multi_query_has_one_key_head_whatever_num_kv_heads_says(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.self_attention.query_key_value.weight", "24x16", "fused_qkv qkv_stacked"},
    };
    (void)state;
    check_config("{\"model_type\": \"falcon\", \"num_hidden_layers\": 1, \"vocab_size\": 100, "
                 "\"hidden_size\": 16, \"num_attention_heads\": 4, \"multi_query\": true, "
                 "\"num_kv_heads\": 4}",
                 cases, SW_COUNT(cases));
}

static void the_new_decoder_goes_by_group_and_ignores_multi_query(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.self_attention.query_key_value.weight", "48x32", "fused_qkv qkv_grouped"},
        {"transformer.h.0.ln_attn.weight",                        "32",    "norm"                 },
        {"transformer.h.0.ln_mlp.bias",                           "32",    "norm"                 },
        {"transformer.h.0.input_layernorm.weight",                NULL,    NULL                   },
    };
    (void)state;
    check_config("{\"model_type\": \"falcon\", \"num_hidden_layers\": 1, \"vocab_size\": 100, "
                 "\"hidden_size\": 32, \"num_attention_heads\": 8, \"multi_query\": true, "
                 "\"new_decoder_architecture\": true, \"num_kv_heads\": 2}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_early_model_goes_head_by_head),
        cmocka_unit_test(multi_query_stacks_all_queries_one_key_and_one_value),
        cmocka_unit_test(multi_query_has_one_key_head_whatever_num_kv_heads_says),
        cmocka_unit_test(the_new_decoder_goes_by_group_and_ignores_multi_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
