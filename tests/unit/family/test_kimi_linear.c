/*
 * Kimi Linear: one name for two things, told apart by the layer.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.A_log",                                "special mixer f32"},
        {"model.layers.#.self_attn.q_conv1d.weight",                      "replicated mixer" },
        {"model.layers.#.self_attn.o_norm.weight",                        "norm mixer"       },
        {"model.layers.#.self_attn.kv_a_proj_with_mqa.weight",            "replicated"       },
        {"model.layers.#.self_attn.kv_b_proj.weight",                     "colwise heads"    },
        {"model.layers.#.block_sparse_moe.gate.weight",                   "moe_gate"         },
        {"model.layers.#.block_sparse_moe.gate.e_score_correction_bias",  "moe_gate frozen"  },
        {"model.layers.#.block_sparse_moe.experts.#.w1.weight",           "moe_expert out"   },
        {"model.layers.#.block_sparse_moe.experts.#.w3.weight",           "moe_expert out"   },
        {"model.layers.#.block_sparse_moe.experts.#.w2.weight",           "moe_expert in"    },
        {"model.layers.#.block_sparse_moe.shared_experts.up_proj.weight", "shared_expert out"},
    };
    (void)state;
    check_family("KimiLinearForCausalLM", "kimi_linear", "kimi_linear", cases, SW_COUNT(cases));
}

static void one_name_is_a_mixer_in_one_layer_and_attention_in_the_next(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_proj.weight",              "32x32",   "replicated mixer" },
        {"model.layers.0.self_attn.o_proj.weight",              "32x32",   "replicated mixer" },
        {"model.layers.1.self_attn.q_proj.weight",              "48x32",   "colwise heads"    },
        {"model.layers.1.self_attn.o_proj.weight",              "32x32",   "rowwise heads"    },
        {"model.layers.1.self_attn.k_proj.weight",              NULL,      NULL               },
        {"model.layers.0.self_attn.A_log",                      "1x1x4x1", "special mixer f32"},
        {"model.layers.0.mlp.up_proj.weight",                   "64x32",   "colwise"          },
        {"model.layers.1.mlp.up_proj.weight",                   NULL,      NULL               },
        {"model.layers.1.block_sparse_moe.experts.1.w2.weight", "32x16",   "moe_expert in"    },
    };
    (void)state;
    check_config("{\"model_type\": \"kimi_linear\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, \"num_experts\": 2, "
                 "\"num_shared_experts\": 1, \"moe_intermediate_size\": 16, "
                 "\"first_k_dense_replace\": 1, \"kv_lora_rank\": 6, "
                 "\"qk_nope_head_dim\": 4, \"qk_rope_head_dim\": 2, \"v_head_dim\": 4, "
                 "\"linear_attn_config\": {\"kda_layers\": [1], \"full_attn_layers\": [2], "
                 "\"num_heads\": 4, \"head_dim\": 8, \"short_conv_kernel_size\": 4}}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(one_name_is_a_mixer_in_one_layer_and_attention_in_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
