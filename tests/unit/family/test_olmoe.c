/* OLMoE. */
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
    check_family("OlmoeForCausalLM", "olmoe", "olmoe", cases, SW_COUNT(cases));
}

static void norms_over_all_heads_are_cut_with_them(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_norm.weight", "norm heads full_norm"   },
        {"model.layers.#.self_attn.k_norm.weight", "norm kv_heads full_norm"},
    };
    (void)state;
    check_family("OlmoeForCausalLM", "olmoe", "olmoe", cases, SW_COUNT(cases));
}

static void routed_experts_say_their_side(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.experts.#.gate_proj.weight", "moe_expert out"},
        {"model.layers.#.mlp.experts.#.up_proj.weight",   "moe_expert out"},
        {"model.layers.#.mlp.experts.#.down_proj.weight", "moe_expert in" },
        {"model.layers.#.mlp.gate.weight",                "moe_gate"      },
    };
    (void)state;
    check_family("OlmoeForCausalLM", "olmoe", "olmoe", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(norms_over_all_heads_are_cut_with_them),
        cmocka_unit_test(routed_experts_say_their_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
