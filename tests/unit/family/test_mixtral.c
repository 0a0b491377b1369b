/* Mixtral. */
#include "family_case.h"

static void projections_are_cut_by_heads(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.weight", "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.weight", "colwise kv_heads"},
        {"model.layers.#.self_attn.v_proj.weight", "colwise kv_heads"},
        {"model.layers.#.self_attn.o_proj.weight", "rowwise heads"   },
    };
    (void)state;
    check_family("MixtralForCausalLM", "mixtral", "mixtral", cases, SW_COUNT(cases));
}

static void w1_and_w3_are_columns_and_w2_rows(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.block_sparse_moe.experts.#.w1.weight", "moe_expert out"},
        {"model.layers.#.block_sparse_moe.experts.#.w3.weight", "moe_expert out"},
        {"model.layers.#.block_sparse_moe.experts.#.w2.weight", "moe_expert in" },
        {"model.layers.#.block_sparse_moe.gate.weight",         "moe_gate"      },
    };
    (void)state;
    check_family("MixtralForCausalLM", "mixtral", "mixtral", cases, SW_COUNT(cases));
}

static void the_newer_names_are_known(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.experts.#.gate_proj.weight", "moe_expert out optional"                  },
        {"model.layers.#.mlp.experts.#.up_proj.weight",   "moe_expert out optional"                  },
        {"model.layers.#.mlp.experts.#.down_proj.weight", "moe_expert in optional"                   },
        {"model.layers.#.mlp.experts.gate_up_proj",       "moe_expert stacked 2 out experts optional"},
        {"model.layers.#.mlp.experts.down_proj",          "moe_expert in experts optional"           },
        {"model.layers.#.mlp.gate.weight",                "moe_gate optional"                        },
    };
    (void)state;
    check_family("MixtralForCausalLM", "mixtral", "mixtral", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(w1_and_w3_are_columns_and_w2_rows),
        cmocka_unit_test(the_newer_names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
