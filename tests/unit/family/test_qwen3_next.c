/*
 * Qwen3-Next: delta net in most layers, gated attention in the others, a layer for prediction.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.linear_attn.A_log",                  "special mixer"   },
        {"model.layers.#.linear_attn.dt_bias",                "special mixer"   },
        {"model.layers.#.linear_attn.in_proj_qkvz.weight",    "replicated mixer"},
        {"model.layers.#.linear_attn.norm.weight",            "norm mixer"      },
        {"model.layers.#.self_attn.q_proj.weight",            "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.weight",            "colwise kv_heads"},
        {"model.layers.#.self_attn.q_norm.weight",            "norm"            },
        {"model.layers.#.mlp.gate.weight",                    "moe_gate"        },
        {"model.layers.#.mlp.experts.#.up_proj.weight",       "moe_expert out"  },
        {"model.layers.#.mlp.shared_expert.down_proj.weight", "shared_expert in"},
        {"model.layers.#.mlp.shared_expert_gate.weight",      "replicated"      },
        {"mtp.fc.weight",                                     "replicated"      },
        {"mtp.layers.#.self_attn.q_proj.weight",              "colwise heads"   },
        {"mtp.layers.#.mlp.experts.#.down_proj.weight",       "moe_expert in"   },
        {"mtp.pre_fc_norm_hidden.weight",                     "norm"            },
    };
    (void)state;
    check_family("Qwen3NextForCausalLM", "qwen3_next", "qwen3_next", cases, SW_COUNT(cases));
}

static void the_query_projection_holds_a_gate_and_layers_alternate(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.linear_attn.in_proj_qkvz.weight", "96x32",  "replicated mixer"},
        {"model.layers.0.linear_attn.conv1d.weight",       "64x1x4", "replicated mixer"},
        {"model.layers.0.self_attn.q_proj.weight",         NULL,     NULL              },
        {"model.layers.1.self_attn.q_proj.weight",         "128x32", "colwise heads"   },
        {"model.layers.1.linear_attn.A_log",               NULL,     NULL              },
        {"mtp.layers.0.self_attn.q_proj.weight",           "128x32", "colwise heads"   },
        {"mtp.layers.1.self_attn.q_proj.weight",           NULL,     NULL              },
        {"mtp.fc.weight",                                  "32x64",  "replicated"      },
    };
    (void)state;
    check_config("{\"model_type\": \"qwen3_next\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"full_attention_interval\": 2, \"num_key_value_heads\": 2, "
                 "\"head_dim\": 8, \"num_experts\": 2, \"moe_intermediate_size\": 16, "
                 "\"shared_expert_intermediate_size\": 16, \"linear_num_key_heads\": 2, "
                 "\"linear_num_value_heads\": 4, \"linear_key_head_dim\": 8, "
                 "\"linear_value_head_dim\": 8, \"linear_conv_kernel_dim\": 4}",
                 cases, SW_COUNT(cases));
}

static void layer_types_may_say_it_instead(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_proj.weight", "64x32", "colwise heads"},
        {"model.layers.1.linear_attn.dt_bias",     "4",     "special mixer"},
    };
    (void)state;
    check_config("{\"model_type\": \"qwen3_next\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"layer_types\": [\"full_attention\", \"linear_attention\"], "
                 "\"num_experts\": 2, \"moe_intermediate_size\": 16, "
                 "\"shared_expert_intermediate_size\": 16, \"linear_num_key_heads\": 2, "
                 "\"linear_num_value_heads\": 4, \"linear_key_head_dim\": 8, "
                 "\"linear_value_head_dim\": 8, \"linear_conv_kernel_dim\": 4}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_query_projection_holds_a_gate_and_layers_alternate),
        cmocka_unit_test(layer_types_may_say_it_instead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
