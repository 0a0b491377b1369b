/*
 * MiniMax: lightning attention in most layers.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.norm.weight",                "norm mixer"          },
        {"model.layers.#.self_attn.qkv_proj.weight",            "replicated mixer"    },
        {"model.layers.#.self_attn.out_proj.weight",            "replicated mixer"    },
        {"model.layers.#.self_attn.output_gate.weight",         "replicated mixer"    },
        {"model.layers.#.self_attn.slope_rate",                 "skip buffer optional"},
        {"model.layers.#.self_attn.q_proj.weight",              "colwise heads"       },
        {"model.layers.#.self_attn.o_proj.weight",              "rowwise heads"       },
        {"model.layers.#.block_sparse_moe.experts.#.w2.weight", "moe_expert in"       },
    };
    (void)state;
    check_family("MiniMaxForCausalLM", "minimax", "minimax", cases, SW_COUNT(cases));
}

static void the_older_list_of_kinds_is_understood(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.qkv_proj.weight",    "96x32", "replicated mixer"},
        {"model.layers.0.self_attn.q_proj.weight",      NULL,    NULL              },
        {"model.layers.1.self_attn.k_proj.weight",      "8x32",  "colwise kv_heads"},
        {"model.layers.1.self_attn.output_gate.weight", NULL,    NULL              },
    };
    (void)state;
    check_config("{\"model_type\": \"minimax_text_01\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"attn_type_list\": [0, 1], \"num_local_experts\": 2, "
                 "\"num_key_value_heads\": 2}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_older_list_of_kinds_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
