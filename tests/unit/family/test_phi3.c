/*
 * Phi-3: query, key, value and gate, up are stacked.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.qkv_proj.weight", "fused_qkv qkv_stacked"  },
        {"model.layers.#.self_attn.o_proj.weight",   "rowwise heads"          },
        {"model.layers.#.mlp.gate_up_proj.weight",   "fused_gate_up stacked 2"},
        {"model.layers.#.mlp.down_proj.weight",      "rowwise"                },
        {"lm_head.weight",                           "lm_head vocab"          },
    };
    (void)state;
    check_family("Phi3ForCausalLM", "phi3", "phi3", cases, SW_COUNT(cases));
}

static void grouped_queries_shorten_the_fused_projection(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.qkv_proj.weight", "48x32",  "fused_qkv qkv_stacked"  },
        {"model.layers.0.mlp.gate_up_proj.weight",   "128x32", "fused_gate_up stacked 2"},
    };
    (void)state;
    check_config("{\"model_type\": \"phi3\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"num_key_value_heads\": 2}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(grouped_queries_shorten_the_fused_projection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
