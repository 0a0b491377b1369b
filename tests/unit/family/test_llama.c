/* Llama. */
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
    check_family("LlamaForCausalLM", "llama", "llama", cases, SW_COUNT(cases));
}

static void the_mlp_is_cut_by_columns_then_rows(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.mlp.gate_proj.weight", "colwise"},
        {"model.layers.#.mlp.up_proj.weight",   "colwise"},
        {"model.layers.#.mlp.down_proj.weight", "rowwise"},
    };
    (void)state;
    check_family("LlamaForCausalLM", "llama", "llama", cases, SW_COUNT(cases));
}

static void both_ends_are_cut_along_the_vocabulary(void **state)
{
    static const family_case cases[] = {
        {"model.embed_tokens.weight", "embed vocab"  },
        {"lm_head.weight",            "lm_head vocab"},
        {"model.norm.weight",         "norm"         },
    };
    (void)state;
    check_family("LlamaForCausalLM", "llama", "llama", cases, SW_COUNT(cases));
}

static void biases_follow_columns_and_are_whole_after_rows(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.bias", "colwise heads"   },
        {"model.layers.#.self_attn.k_proj.bias", "colwise kv_heads"},
        {"model.layers.#.self_attn.v_proj.bias", "colwise kv_heads"},
        {"model.layers.#.self_attn.o_proj.bias", "bias"            },
        {"model.layers.#.mlp.up_proj.bias",      "colwise"         },
        {"model.layers.#.mlp.down_proj.bias",    "bias"            },
    };
    (void)state;
    check_family("LlamaForCausalLM", "llama", "llama", cases, SW_COUNT(cases));
}

static void rotary_buffers_are_carried(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.rotary_emb.inv_freq", "skip buffer optional"},
    };
    (void)state;
    check_family("LlamaForCausalLM", "llama", "llama", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_are_cut_by_heads),
        cmocka_unit_test(the_mlp_is_cut_by_columns_then_rows),
        cmocka_unit_test(both_ends_are_cut_along_the_vocabulary),
        cmocka_unit_test(biases_follow_columns_and_are_whole_after_rows),
        cmocka_unit_test(rotary_buffers_are_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
