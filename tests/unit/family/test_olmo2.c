/* OLMo 2 and 3. */
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
    check_family("Olmo2ForCausalLM", "olmo2", "olmo2", cases, SW_COUNT(cases));
}

static void norms_over_all_heads_are_cut_with_them(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_norm.weight", "norm heads full_norm"   },
        {"model.layers.#.self_attn.k_norm.weight", "norm kv_heads full_norm"},
    };
    (void)state;
    check_family("Olmo2ForCausalLM", "olmo2", "olmo2", cases, SW_COUNT(cases));
}

static void norms_stand_after_both_halves(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.post_attention_layernorm.weight",   "norm"},
        {"model.layers.#.post_feedforward_layernorm.weight", "norm"},
    };
    (void)state;
    check_family("Olmo2ForCausalLM", "olmo2", "olmo2", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(norms_over_all_heads_are_cut_with_them),
        cmocka_unit_test(norms_stand_after_both_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
