/*
 * StableLM: Llama with layer norms, and a parallel variant.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.weight",              "colwise heads"   },
        {"model.layers.#.self_attn.v_proj.bias",                "colwise kv_heads"},
        {"model.layers.#.self_attn.q_layernorm.norms.#.weight", "norm"            },
        {"model.layers.#.mlp.up_proj.weight",                   "colwise"         },
        {"model.layers.#.input_layernorm.bias",                 "norm"            },
        {"model.norm.bias",                                     "norm"            },
    };
    (void)state;
    check_family("StableLmForCausalLM", "stablelm", "stablelm", cases, SW_COUNT(cases));
}

static void query_biases_follow_use_qkv_bias(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_proj.bias",         "32", "colwise heads"},
        {"model.layers.0.self_attn.o_proj.bias",         NULL, NULL           },
        {"model.layers.0.post_attention_layernorm.bias", "32", "norm"         },
    };
    (void)state;
    check_config("{\"model_type\": \"stablelm\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, \"use_qkv_bias\": true}",
                 cases, SW_COUNT(cases));
}

static void each_head_may_have_a_norm_of_its_own(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_layernorm.norms.7.weight", "4",  "norm"},
        {"model.layers.0.self_attn.q_layernorm.norms.8.weight", NULL, NULL  },
        {"model.layers.0.self_attn.k_layernorm.norms.1.weight", "4",  "norm"},
        {"model.layers.0.self_attn.k_layernorm.norms.2.weight", NULL, NULL  },
    };
    (void)state;
    check_config("{\"model_type\": \"stablelm\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, \"qk_layernorm\": true, "
                 "\"num_key_value_heads\": 2}",
                 cases, SW_COUNT(cases));
}

static void a_parallel_layer_has_one_norm(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.input_layernorm.weight",          "32", "norm"},
        {"model.layers.0.post_attention_layernorm.weight", NULL, NULL  },
    };
    (void)state;
    check_config("{\"model_type\": \"stablelm\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"use_parallel_residual\": true}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(query_biases_follow_use_qkv_bias),
        cmocka_unit_test(each_head_may_have_a_norm_of_its_own),
        cmocka_unit_test(a_parallel_layer_has_one_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
