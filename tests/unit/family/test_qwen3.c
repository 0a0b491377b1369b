/* Qwen3. */
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
    check_family("Qwen3ForCausalLM", "qwen3", "qwen3", cases, SW_COUNT(cases));
}

static void norms_per_head_are_whole(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_norm.weight", "norm"},
        {"model.layers.#.self_attn.k_norm.weight", "norm"},
    };
    (void)state;
    check_family("Qwen3ForCausalLM", "qwen3", "qwen3", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(norms_per_head_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
