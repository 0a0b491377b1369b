/* Mistral. */
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
    check_family("MistralForCausalLM", "mistral", "mistral", cases, SW_COUNT(cases));
}

static void the_mlp_is_cut_by_columns_then_rows(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.gate_proj.weight", "colwise"},
        {"model.layers.#.mlp.up_proj.weight",   "colwise"},
        {"model.layers.#.mlp.down_proj.weight", "rowwise"},
    };
    (void)state;
    check_family("MistralForCausalLM", "mistral", "mistral", cases, SW_COUNT(cases));
}

static void both_ends_are_cut_along_the_vocabulary(void **state)
{
    static const family_case cases[] = {
        {"model.embed_tokens.weight", "embed vocab"  },
        {"lm_head.weight",            "lm_head vocab"},
        {"model.norm.weight",         "norm"         },
    };
    (void)state;
    check_family("MistralForCausalLM", "mistral", "mistral", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(the_mlp_is_cut_by_columns_then_rows),
        cmocka_unit_test(both_ends_are_cut_along_the_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
