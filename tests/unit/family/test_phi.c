/*
 * Phi: biases everywhere, the head included.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.bias",        "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.weight",      "colwise kv_heads"},
        {"model.layers.#.self_attn.dense.weight",       "rowwise heads"   },
        {"model.layers.#.self_attn.dense.bias",         "bias"            },
        {"model.layers.#.self_attn.q_layernorm.weight", "norm"            },
        {"model.layers.#.mlp.fc1.bias",                 "colwise"         },
        {"model.layers.#.mlp.fc2.weight",               "rowwise"         },
        {"model.layers.#.mlp.fc2.bias",                 "bias"            },
        {"model.final_layernorm.weight",                "norm"            },
        {"lm_head.bias",                                "lm_head vocab"   },
    };
    (void)state;
    check_family("PhiForCausalLM", "phi", "phi", cases, SW_COUNT(cases));
}

static void query_and_key_norms_are_one_head_long(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_layernorm.weight", "4",   "norm"         },
        {"model.layers.0.self_attn.k_layernorm.bias",   "4",   "norm"         },
        {"lm_head.bias",                                "100", "lm_head vocab"},
    };
    (void)state;
    check_config("{\"model_type\": \"phi\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"qk_layernorm\": true}",
                 cases, SW_COUNT(cases));
}

static void query_and_key_norms_are_off_by_default(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_layernorm.weight", NULL, NULL},
    };
    (void)state;
    check_config("{\"model_type\": \"phi\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(query_and_key_norms_are_one_head_long),
        cmocka_unit_test(query_and_key_norms_are_off_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
