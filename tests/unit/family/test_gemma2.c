/* Gemma 2. */
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
    check_family("Gemma2ForCausalLM", "gemma2", "gemma2", cases, SW_COUNT(cases));
}

static void four_norms_a_layer_are_norms(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.input_layernorm.weight",            "norm"},
        {"model.layers.#.post_attention_layernorm.weight",   "norm"},
        {"model.layers.#.pre_feedforward_layernorm.weight",  "norm"},
        {"model.layers.#.post_feedforward_layernorm.weight", "norm"},
    };
    (void)state;
    check_family("Gemma2ForCausalLM", "gemma2", "gemma2", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(four_norms_a_layer_are_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
