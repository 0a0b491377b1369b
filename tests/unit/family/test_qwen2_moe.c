/* Qwen2-MoE. */
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
    check_family("Qwen2MoeForCausalLM", "qwen2_moe", "qwen2_moe", cases, SW_COUNT(cases));
}

static void biases_are_cut_with_their_columns(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.bias", "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.bias", "colwise kv_heads"},
        {"model.layers.#.self_attn.v_proj.bias", "colwise kv_heads"},
    };
    (void)state;
    check_family("Qwen2MoeForCausalLM", "qwen2_moe", "qwen2_moe", cases, SW_COUNT(cases));
}

static void routed_experts_say_their_side(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.experts.#.gate_proj.weight", "moe_expert out"                           },
        {"model.layers.#.mlp.experts.#.up_proj.weight",   "moe_expert out"                           },
        {"model.layers.#.mlp.experts.#.down_proj.weight", "moe_expert in"                            },
        {"model.layers.#.mlp.experts.gate_up_proj",       "moe_expert stacked 2 out experts optional"},
        {"model.layers.#.mlp.experts.down_proj",          "moe_expert in experts optional"           },
        {"model.layers.#.mlp.gate.weight",                "moe_gate"                                 },
    };
    (void)state;
    check_family("Qwen2MoeForCausalLM", "qwen2_moe", "qwen2_moe", cases, SW_COUNT(cases));
}

static void the_gate_of_the_shared_expert_is_no_expert(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.shared_expert.gate_proj.weight", "shared_expert out"},
        {"model.layers.#.mlp.shared_expert.up_proj.weight",   "shared_expert out"},
        {"model.layers.#.mlp.shared_expert.down_proj.weight", "shared_expert in" },
        {"model.layers.#.mlp.shared_expert_gate.weight",      "replicated"       },
    };
    (void)state;
    check_family("Qwen2MoeForCausalLM", "qwen2_moe", "qwen2_moe", cases, SW_COUNT(cases));
}

static void dense_layers_have_an_mlp(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.gate_proj.weight", "colwise"},
        {"model.layers.#.mlp.up_proj.weight",   "colwise"},
        {"model.layers.#.mlp.down_proj.weight", "rowwise"},
    };
    (void)state;
    check_family("Qwen2MoeForCausalLM", "qwen2_moe", "qwen2_moe", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(biases_are_cut_with_their_columns),
        cmocka_unit_test(routed_experts_say_their_side),
        cmocka_unit_test(the_gate_of_the_shared_expert_is_no_expert),
        cmocka_unit_test(dense_layers_have_an_mlp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
