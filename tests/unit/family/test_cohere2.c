/*
 * Command R7B: one norm a layer, a tied head.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.weight", "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.weight", "colwise kv_heads"},
        {"model.layers.#.mlp.gate_proj.weight",    "colwise"         },
        {"model.layers.#.input_layernorm.weight",  "norm"            },
    };
    (void)state;
    check_family("Cohere2ForCausalLM", "cohere2", "cohere2", cases, SW_COUNT(cases));
}

static void a_layer_has_one_norm(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.input_layernorm.weight",          "32", "norm"},
        {"model.layers.0.post_attention_layernorm.weight", NULL, NULL  },
        {"lm_head.weight",                                 NULL, NULL  },
    };
    (void)state;
    check_config("{\"model_type\": \"cohere2\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(a_layer_has_one_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
