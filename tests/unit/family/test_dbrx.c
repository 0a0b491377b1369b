/*
 * DBRX: experts one below the other in one matrix, the last of them transposed.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.blocks.#.norm_attn_norm.attn.Wqkv.weight",     "fused_qkv qkv_stacked"      },
        {"transformer.blocks.#.norm_attn_norm.attn.out_proj.weight", "rowwise heads"              },
        {"transformer.blocks.#.norm_attn_norm.norm_2.weight",        "norm"                       },
        {"transformer.blocks.#.ffn.router.layer.weight",             "moe_gate"                   },
        {"transformer.blocks.#.ffn.experts.mlp.w1",                  "moe_expert out expert_rows" },
        {"transformer.blocks.#.ffn.experts.mlp.v1",                  "moe_expert out expert_rows" },
        {"transformer.blocks.#.ffn.experts.mlp.w2",                  "moe_expert in expert_rows_t"},
    };
    (void)state;
    check_family("DbrxForCausalLM", "dbrx", "dbrx", cases, SW_COUNT(cases));
}

static void sizes_stand_in_nested_objects(void **state)
{
    static const config_case cases[] = {
        {"transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight", "48x32", "fused_qkv qkv_stacked"      },
        {"transformer.blocks.0.ffn.experts.mlp.w1",              "64x32", "moe_expert out expert_rows" },
        {"transformer.blocks.0.ffn.experts.mlp.w2",              "64x32", "moe_expert in expert_rows_t"},
        {"transformer.blocks.0.ffn.router.layer.weight",         "4x32",  "moe_gate"                   },
    };
    (void)state;
    check_config("{\"model_type\": \"dbrx\", \"d_model\": 32, \"n_layers\": 1, \"n_heads\": 8, "
                 "\"vocab_size\": 100, \"attn_config\": {\"kv_n_heads\": 2}, "
                 "\"ffn_config\": {\"ffn_hidden_size\": 16, \"moe_num_experts\": 4, "
                 "\"moe_top_k\": 2}}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(sizes_stand_in_nested_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
