/*
 * GPT-BigCode: c_attn stacks under multi_query, else goes head by head.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.wpe.weight",             "replicated position"},
        {"transformer.h.#.attn.c_proj.weight", "rowwise heads"      },
        {"transformer.h.#.attn.c_proj.bias",   "bias"               },
        {"transformer.h.#.mlp.c_fc.weight",    "colwise"            },
        {"transformer.h.#.mlp.c_proj.weight",  "rowwise"            },
    };
    (void)state;
    check_family("GPTBigCodeForCausalLM", "gpt_bigcode", "gpt_bigcode", cases, SW_COUNT(cases));
}

static void multi_query_has_one_key_and_one_value(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.attn.c_attn.weight", "40x32", "fused_qkv qkv_stacked"},
        {"transformer.h.0.attn.c_attn.bias",   "40",    "fused_qkv qkv_stacked"},
        {"lm_head.weight",                     NULL,    NULL                   },
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_bigcode\", \"n_embd\": 32, \"n_layer\": 1, "
                 "\"n_head\": 8, \"n_positions\": 16, \"vocab_size\": 100, "
                 "\"multi_query\": true}",
                 cases, SW_COUNT(cases));
}

static void many_heads_go_head_by_head(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.attn.c_attn.weight", "96x32", "fused_qkv qkv_per_head"},
        {"transformer.h.0.attn.c_attn.bias",   "96",    "fused_qkv qkv_per_head"},
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_bigcode\", \"n_embd\": 32, \"n_layer\": 1, "
                 "\"n_head\": 8, \"n_positions\": 16, \"vocab_size\": 100, "
                 "\"multi_query\": false}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(multi_query_has_one_key_and_one_value),
        cmocka_unit_test(many_heads_go_head_by_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
