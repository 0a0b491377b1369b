/*
 * ChatGLM: stacked projections with few key/value groups.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.encoder.layers.#.self_attention.query_key_value.weight", "fused_qkv qkv_stacked"  },
        {"transformer.encoder.layers.#.self_attention.query_key_value.bias",   "fused_qkv qkv_stacked"  },
        {"transformer.encoder.layers.#.self_attention.dense.weight",           "rowwise heads"          },
        {"transformer.encoder.layers.#.mlp.dense_h_to_4h.weight",              "fused_gate_up stacked 2"},
        {"transformer.encoder.layers.#.mlp.dense_4h_to_h.weight",              "rowwise"                },
        {"transformer.rotary_pos_emb.inv_freq",                                "skip buffer optional"   },
        {"transformer.output_layer.weight",                                    "lm_head vocab"          },
    };
    (void)state;
    check_family("ChatGLMModel", "chatglm", "chatglm", cases, SW_COUNT(cases));
}

static void groups_shorten_the_fused_projection(void **state)
{
    static const config_case cases[] = {
        {"transformer.encoder.layers.0.self_attention.query_key_value.weight", "48x32",
         "fused_qkv qkv_stacked"                                                                                  },
        {"transformer.encoder.layers.0.self_attention.query_key_value.bias",   "48",     "fused_qkv qkv_stacked"  },
        {"transformer.encoder.layers.0.mlp.dense_h_to_4h.weight",              "128x32", "fused_gate_up stacked 2"},
        {"transformer.encoder.layers.0.self_attention.dense.bias",             NULL,     NULL                     },
    };
    (void)state;
    check_config("{\"model_type\": \"chatglm\", \"hidden_size\": 32, \"num_layers\": 1, "
                 "\"num_attention_heads\": 8, \"kv_channels\": 4, \"ffn_hidden_size\": 64, "
                 "\"padded_vocab_size\": 100, \"multi_query_attention\": true, "
                 "\"multi_query_group_num\": 2, \"add_qkv_bias\": true}",
                 cases, SW_COUNT(cases));
}

static void groups_count_only_under_multi_query_attention(void **state)
{
    static const config_case cases[] = {
        {"transformer.encoder.layers.0.self_attention.query_key_value.weight", "96x32",
         "fused_qkv qkv_stacked"                                                            },
        {"transformer.encoder.layers.0.self_attention.query_key_value.bias",   NULL,    NULL},
    };
    (void)state;
    check_config("{\"model_type\": \"chatglm\", \"hidden_size\": 32, \"num_layers\": 1, "
                 "\"num_attention_heads\": 8, \"kv_channels\": 4, \"ffn_hidden_size\": 64, "
                 "\"padded_vocab_size\": 100, \"multi_query_attention\": false, "
                 "\"multi_query_group_num\": 1}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(groups_shorten_the_fused_projection),
        cmocka_unit_test(groups_count_only_under_multi_query_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
