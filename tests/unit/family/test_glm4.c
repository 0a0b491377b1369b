/*
 * GLM-4-0414: GLM with a norm behind attention and MLP.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.bias",           "colwise heads"          },
        {"model.layers.#.self_attn.k_proj.weight",         "colwise kv_heads"       },
        {"model.layers.#.self_attn.o_proj.weight",         "rowwise heads"          },
        {"model.layers.#.mlp.gate_up_proj.weight",         "fused_gate_up stacked 2"},
        {"model.layers.#.mlp.down_proj.weight",            "rowwise"                },
        {"model.layers.#.post_self_attn_layernorm.weight", "norm"                   },
        {"model.layers.#.post_mlp_layernorm.weight",       "norm"                   },
    };
    (void)state;
    check_family("Glm4ForCausalLM", "glm4", "glm4", cases, SW_COUNT(cases));
}

static void the_output_projection_has_no_bias(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_proj.bias",     "64",     "colwise heads"          },
        {"model.layers.0.self_attn.k_proj.weight",   "16x32",  "colwise kv_heads"       },
        {"model.layers.0.self_attn.o_proj.bias",     NULL,     NULL                     },
        {"model.layers.0.mlp.gate_up_proj.weight",   "128x32", "fused_gate_up stacked 2"},
        {"model.layers.0.post_mlp_layernorm.weight", "32",     "norm"                   },
    };
    (void)state;
    check_config("{\"model_type\": \"glm4\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"attention_bias\": true, "
                 "\"num_key_value_heads\": 2, \"head_dim\": 8}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_output_projection_has_no_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
