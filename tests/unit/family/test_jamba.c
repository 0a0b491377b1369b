/*
 * Jamba: attention in one layer of a period, experts in one of another.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mamba.A_log",                             "special mixer"   },
        {"model.layers.#.mamba.in_proj.weight",                    "replicated mixer"},
        {"model.layers.#.mamba.dt_layernorm.weight",               "norm mixer"      },
        {"model.layers.#.self_attn.q_proj.weight",                 "colwise heads"   },
        {"model.layers.#.feed_forward.router.weight",              "moe_gate"        },
        {"model.layers.#.feed_forward.experts.#.gate_proj.weight", "moe_expert out"  },
        {"model.layers.#.feed_forward.experts.#.down_proj.weight", "moe_expert in"   },
        {"model.layers.#.feed_forward.down_proj.weight",           "rowwise"         },
        {"model.layers.#.pre_ff_layernorm.weight",                 "norm"            },
    };
    (void)state;
    check_family("JambaForCausalLM", "jamba", "jamba", cases, SW_COUNT(cases));
}

static void layers_alternate_in_two_periods(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.mamba.in_proj.weight",                    "128x32", "replicated mixer"},
        {"model.layers.0.self_attn.q_proj.weight",                 NULL,     NULL              },
        {"model.layers.2.self_attn.q_proj.weight",                 "32x32",  "colwise heads"   },
        {"model.layers.2.mamba.A_log",                             NULL,     NULL              },
        {"model.layers.0.feed_forward.gate_proj.weight",           "64x32",  "colwise"         },
        {"model.layers.1.feed_forward.gate_proj.weight",           NULL,     NULL              },
        {"model.layers.1.feed_forward.experts.1.down_proj.weight", "32x64",  "moe_expert in"   },
        {"model.layers.1.feed_forward.router.weight",              "2x32",   "moe_gate"        },
    };
    (void)state;
    check_config("{\"model_type\": \"jamba\", \"hidden_size\": 32, \"num_hidden_layers\": 4, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"attn_layer_period\": 4, \"attn_layer_offset\": 2, "
                 "\"expert_layer_period\": 2, \"expert_layer_offset\": 1, "
                 "\"num_experts\": 2}",
                 cases, SW_COUNT(cases));
}

static void one_expert_is_a_dense_mlp(void **state)
{
    static const config_case cases[] = {
        {"model.layers.1.feed_forward.gate_proj.weight", "64x32", "colwise"},
        {"model.layers.1.feed_forward.router.weight",    NULL,    NULL     },
    };
    (void)state;
    check_config("{\"model_type\": \"jamba\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"num_experts\": 1}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(layers_alternate_in_two_periods),
        cmocka_unit_test(one_expert_is_a_dense_mlp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
