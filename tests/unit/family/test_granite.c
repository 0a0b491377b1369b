/*
 * Granite: Llama, with biases where the config wants them.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.k_proj.weight", "colwise kv_heads"},
        {"model.layers.#.self_attn.o_proj.bias",   "bias"            },
        {"model.layers.#.mlp.up_proj.bias",        "colwise"         },
        {"model.layers.#.mlp.down_proj.bias",      "bias"            },
    };
    (void)state;
    check_family("GraniteForCausalLM", "granite", "granite", cases, SW_COUNT(cases));
}

static void biases_follow_the_config(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.o_proj.bias", "32", "bias"   },
        {"model.layers.0.mlp.gate_proj.bias",    "64", "colwise"},
        {"lm_head.weight",                       NULL, NULL     },
    };
    (void)state;
    check_config("{\"model_type\": \"granite\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, \"attention_bias\": true, "
                 "\"mlp_bias\": true, \"tie_word_embeddings\": true}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(biases_follow_the_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
