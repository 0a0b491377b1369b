/* DeepSeek-V3. */
#include "family_case.h"

static void latents_are_whole_and_heads_are_cut(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.weight",             "colwise heads"},
        {"model.layers.#.self_attn.q_a_proj.weight",           "replicated"   },
        {"model.layers.#.self_attn.q_a_layernorm.weight",      "norm"         },
        {"model.layers.#.self_attn.q_b_proj.weight",           "colwise heads"},
        {"model.layers.#.self_attn.kv_a_proj_with_mqa.weight", "replicated"   },
        {"model.layers.#.self_attn.kv_a_layernorm.weight",     "norm"         },
        {"model.layers.#.self_attn.kv_b_proj.weight",          "colwise heads"},
        {"model.layers.#.self_attn.o_proj.weight",             "rowwise heads"},
    };
    (void)state;
    check_family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek_v3", cases, SW_COUNT(cases));
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
    check_family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek_v3", cases, SW_COUNT(cases));
}

static void the_correction_of_scores_is_frozen(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.gate.e_score_correction_bias", "moe_gate frozen f32"},
    };
    (void)state;
    check_family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek_v3", cases, SW_COUNT(cases));
}

static void shared_experts_are_one_mlp(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.shared_experts.gate_proj.weight", "shared_expert out"},
        {"model.layers.#.mlp.shared_experts.up_proj.weight",   "shared_expert out"},
        {"model.layers.#.mlp.shared_experts.down_proj.weight", "shared_expert in" },
    };
    (void)state;
    check_family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek_v3", cases, SW_COUNT(cases));
}

static void the_prediction_layer_has_its_own_ends(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.embed_tokens.weight",     "embed vocab copy"      },
        {"model.layers.#.enorm.weight",            "norm"                  },
        {"model.layers.#.hnorm.weight",            "norm"                  },
        {"model.layers.#.eh_proj.weight",          "replicated unquantised"},
        {"model.layers.#.shared_head.norm.weight", "norm"                  },
        {"model.layers.#.shared_head.head.weight", "lm_head vocab copy"    },
    };
    (void)state;
    check_family("DeepseekV3ForCausalLM", "deepseek_v3", "deepseek_v3", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(latents_are_whole_and_heads_are_cut),
        cmocka_unit_test(routed_experts_say_their_side),
        cmocka_unit_test(the_correction_of_scores_is_frozen),
        cmocka_unit_test(shared_experts_are_one_mlp),
        cmocka_unit_test(the_prediction_layer_has_its_own_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
