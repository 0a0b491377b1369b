/*
 * StarCoder 2: c_fc and c_proj are ordinary linears, biases everywhere, a tied head.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.bias",   "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.weight", "colwise kv_heads"},
        {"model.layers.#.self_attn.o_proj.bias",   "bias"            },
        {"model.layers.#.mlp.c_fc.weight",         "colwise"         },
        {"model.layers.#.mlp.c_fc.bias",           "colwise"         },
        {"model.layers.#.mlp.c_proj.weight",       "rowwise"         },
        {"model.layers.#.mlp.c_proj.bias",         "bias"            },
        {"model.norm.bias",                        "norm"            },
        {"lm_head.weight",                         "lm_head vocab"   },
    };
    (void)state;
    check_family("Starcoder2ForCausalLM", "starcoder2", "starcoder2", cases, SW_COUNT(cases));
}

static void biases_are_on_and_the_head_is_tied_by_default(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.mlp.c_fc.weight",       "64x32", "colwise"         },
        {"model.layers.0.self_attn.k_proj.bias", "8",     "colwise kv_heads"},
        {"lm_head.weight",                       NULL,    NULL              },
    };
    (void)state;
    check_config("{\"model_type\": \"starcoder2\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"num_key_value_heads\": 2}",
                 cases, SW_COUNT(cases));
}

static void use_bias_switches_every_bias_off(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_proj.bias", NULL, NULL  },
        {"model.layers.0.self_attn.o_proj.bias", NULL, NULL  },
        {"model.layers.0.mlp.c_proj.bias",       NULL, NULL  },
        {"model.layers.0.input_layernorm.bias",  "32", "norm"},
    };
    (void)state;
    check_config("{\"model_type\": \"starcoder2\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, \"use_bias\": false}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(biases_are_on_and_the_head_is_tied_by_default),
        cmocka_unit_test(use_bias_switches_every_bias_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
