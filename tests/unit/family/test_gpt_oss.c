/*
 * gpt-oss: interleaved gate and up, in MXFP4 blocks or in BF16.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.sinks",                 "colwise heads"                                 },
        {"model.layers.#.self_attn.o_proj.bias",           "bias"                                          },
        {"model.layers.#.mlp.router.weight",               "moe_gate"                                      },
        {"model.layers.#.mlp.router.bias",                 "moe_gate"                                      },
        {"model.layers.#.mlp.experts.gate_up_proj_blocks", "moe_expert interleaved 2 out experts quantised"},
        {"model.layers.#.mlp.experts.gate_up_proj_scales",
         "moe_expert interleaved 2 out experts frozen quantised"                                           },
        {"model.layers.#.mlp.experts.gate_up_proj_bias",   "moe_expert interleaved 2 out experts in_groups"},
        {"model.layers.#.mlp.experts.gate_up_proj",        "moe_expert interleaved 2 out experts_t"        },
        {"model.layers.#.mlp.experts.down_proj_blocks",    "moe_expert in experts quantised"               },
        {"model.layers.#.mlp.experts.down_proj_scales",    "moe_expert in experts frozen quantised"        },
        {"model.layers.#.mlp.experts.down_proj_bias",      "moe_expert in experts"                         },
        {"model.layers.#.mlp.experts.down_proj",           "moe_expert in experts_t"                       },
    };
    (void)state;
    check_family("GptOssForCausalLM", "gpt_oss", "gpt_oss", cases, SW_COUNT(cases));
}

static void mxfp4_stores_blocks_and_scales(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.mlp.experts.gate_up_proj_blocks", "2x64x2x16",
         "moe_expert interleaved 2 out experts quantised"                                                },
        {"model.layers.0.mlp.experts.gate_up_proj_scales", "2x64x2",
         "moe_expert interleaved 2 out experts frozen quantised"                                         },
        {"model.layers.0.mlp.experts.down_proj_blocks",    "2x64x1x16", "moe_expert in experts quantised"},
        {"model.layers.0.mlp.experts.down_proj",           NULL,        NULL                             },
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_oss\", \"hidden_size\": 64, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 32, \"vocab_size\": 100, \"num_local_experts\": 2, "
                 "\"quantization_config\": {\"quant_method\": \"mxfp4\"}}",
                 cases, SW_COUNT(cases));
}

static void without_it_experts_are_stored_input_first(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.mlp.experts.gate_up_proj",        "2x64x64", "moe_expert interleaved 2 out experts_t"},
        {"model.layers.0.mlp.experts.down_proj",           "2x32x64", "moe_expert in experts_t"               },
        {"model.layers.0.mlp.experts.down_proj_bias",      "2x64",    "moe_expert in experts"                 },
        {"model.layers.0.mlp.experts.gate_up_proj_blocks", NULL,      NULL                                    },
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_oss\", \"hidden_size\": 64, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 32, \"vocab_size\": 100, "
                 "\"num_local_experts\": 2}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(mxfp4_stores_blocks_and_scales),
        cmocka_unit_test(without_it_experts_are_stored_input_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
