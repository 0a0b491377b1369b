/*
 * GPT-NeoX: a fused projection head by head, a head called embed_out.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"gpt_neox.embed_in.weight",                           "embed vocab"           },
        {"gpt_neox.layers.#.attention.query_key_value.weight", "fused_qkv qkv_per_head"},
        {"gpt_neox.layers.#.attention.query_key_value.bias",   "fused_qkv qkv_per_head"},
        {"gpt_neox.layers.#.attention.dense.weight",           "rowwise heads"         },
        {"gpt_neox.layers.#.attention.dense.bias",             "bias"                  },
        {"gpt_neox.layers.#.attention.bias",                   "skip buffer optional"  },
        {"gpt_neox.layers.#.attention.masked_bias",            "skip buffer optional"  },
        {"gpt_neox.layers.#.attention.rotary_emb.inv_freq",    "skip buffer optional"  },
        {"gpt_neox.layers.#.mlp.dense_h_to_4h.weight",         "colwise"               },
        {"gpt_neox.layers.#.mlp.dense_4h_to_h.weight",         "rowwise"               },
        {"gpt_neox.layers.#.mlp.dense_4h_to_h.bias",           "bias"                  },
        {"embed_out.weight",                                   "lm_head vocab"         },
    };
    (void)state;
    check_family("GPTNeoXForCausalLM", "gpt_neox", "gpt_neox", cases, SW_COUNT(cases));
}

static void attention_biases_can_be_switched_off(void **state)
{
    static const config_case cases[] = {
        {"gpt_neox.layers.0.attention.query_key_value.bias", NULL, NULL     },
        {"gpt_neox.layers.0.attention.dense.bias",           NULL, NULL     },
        {"gpt_neox.layers.0.mlp.dense_h_to_4h.bias",         "64", "colwise"},
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_neox\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"attention_bias\": false}",
                 cases, SW_COUNT(cases));
}

static void attention_has_biases_by_default(void **state)
{
    static const config_case cases[] = {
        {"gpt_neox.layers.0.attention.query_key_value.bias", "96", "fused_qkv qkv_per_head"},
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_neox\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(attention_biases_can_be_switched_off),
        cmocka_unit_test(attention_has_biases_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
