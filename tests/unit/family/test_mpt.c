/*
 * MPT: stacked Wqkv, no biases unless the config wants them.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.blocks.#.attn.Wqkv.weight",     "fused_qkv qkv_stacked"          },
        {"transformer.blocks.#.attn.Wqkv.bias",       "fused_qkv qkv_stacked"          },
        {"transformer.blocks.#.attn.out_proj.weight", "rowwise heads"                  },
        {"transformer.blocks.#.ffn.up_proj.weight",   "colwise"                        },
        {"transformer.blocks.#.ffn.down_proj.weight", "rowwise"                        },
        {"transformer.wpe.weight",                    "replicated position"            },
        {"transformer.blocks.#.attn.q_ln.weight",     "norm heads full_norm centred"   },
        {"transformer.blocks.#.attn.k_ln.weight",     "norm kv_heads full_norm centred"},
        {"transformer.blocks.#.attn.k_ln.bias",       "norm kv_heads"                  },
    };
    (void)state;
    check_family("MPTForCausalLM", "mpt", "mpt", cases, SW_COUNT(cases));
}

static void sizes_follow_from_its_own_keys(void **state)
{
    static const config_case cases[] = {
        {"transformer.blocks.0.ffn.up_proj.weight", "64x32", "colwise"              },
        {"transformer.blocks.0.attn.Wqkv.weight",   "96x32", "fused_qkv qkv_stacked"},
        {"transformer.blocks.0.attn.Wqkv.bias",     NULL,    NULL                   },
        {"transformer.wpe.weight",                  NULL,    NULL                   },
        {"lm_head.weight",                          NULL,    NULL                   },
    };
    (void)state;
    check_config("{\"model_type\": \"mpt\", \"d_model\": 32, \"n_layers\": 1, \"n_heads\": 8, "
                 "\"expansion_ratio\": 2, \"vocab_size\": 100, \"max_seq_len\": 16}",
                 cases, SW_COUNT(cases));
}

static void grouped_queries_positions_and_biases_follow_from_the_config(void **state)
{
    static const config_case cases[] = {
        {"transformer.blocks.0.attn.Wqkv.weight", "48x32", "fused_qkv qkv_stacked"},
        {"transformer.blocks.0.norm_1.bias",      "32",    "norm"                 },
        {"transformer.wpe.weight",                "16x32", "replicated position"  },
    };
    (void)state;
    check_config("{\"model_type\": \"mpt\", \"d_model\": 32, \"n_layers\": 1, \"n_heads\": 8, "
                 "\"vocab_size\": 100, \"max_seq_len\": 16, \"no_bias\": false, "
                 "\"attn_config\": {\"alibi\": false, \"kv_n_heads\": 2}}",
                 cases, SW_COUNT(cases));
}

#define SMALL                                                                                                \
    "{\"model_type\": \"mpt\", \"d_model\": 32, \"n_layers\": 1, \"n_heads\": 8, \"vocab_size\": 100, "      \
    "\"max_seq_len\": 16, "

static void multi_query_attention_has_one_key_head_whatever_else_the_config_says(void **state)
{
    static const config_case one[] = {
        {"transformer.blocks.0.attn.Wqkv.weight", "40x32", "fused_qkv qkv_stacked"},
    };
    static const config_case many[] = {
        {"transformer.blocks.0.attn.Wqkv.weight", "96x32", "fused_qkv qkv_stacked"},
    };
    static const config_case two[] = {
        {"transformer.blocks.0.attn.Wqkv.weight", "48x32", "fused_qkv qkv_stacked"},
    };
    (void)state;
    check_config(SMALL "\"attn_config\": {\"attn_type\": \"multiquery_attention\"}}", one, SW_COUNT(one));
    check_config(SMALL "\"attn_config\": {\"attn_type\": \"multiquery_attention\", \"kv_n_heads\": 2}}", one,
                 SW_COUNT(one));
    check_config(SMALL "\"attn_config\": {\"attn_type\": \"multihead_attention\"}}", many, SW_COUNT(many));
    check_config(SMALL "\"attn_config\": {\"attn_type\": \"grouped_query_attention\", \"kv_n_heads\": 2}}",
                 two, SW_COUNT(two));
}

static void query_and_key_norms_are_as_long_as_their_heads(void **state)
{
    static const config_case cases[] = {
        {"transformer.blocks.0.attn.q_ln.weight", "32", "norm heads full_norm centred"   },
        {"transformer.blocks.0.attn.k_ln.weight", "8",  "norm kv_heads full_norm centred"},
        {"transformer.blocks.0.attn.k_ln.bias",   NULL, NULL                             },
    };
    (void)state;
    check_config(SMALL "\"attn_config\": {\"qk_ln\": true, \"kv_n_heads\": 2}}", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(sizes_follow_from_its_own_keys),
        cmocka_unit_test(grouped_queries_positions_and_biases_follow_from_the_config),
        cmocka_unit_test(multi_query_attention_has_one_key_head_whatever_else_the_config_says),
        cmocka_unit_test(query_and_key_norms_are_as_long_as_their_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
