/*
 * OPT: an MLP without a module of its own, a position table with two more rows.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.decoder.embed_positions.weight",             "replicated position"},
        {"model.decoder.layers.#.self_attn.q_proj.bias",     "colwise heads"      },
        {"model.decoder.layers.#.self_attn.out_proj.weight", "rowwise heads"      },
        {"model.decoder.layers.#.self_attn.out_proj.bias",   "bias"               },
        {"model.decoder.layers.#.fc1.weight",                "colwise"            },
        {"model.decoder.layers.#.fc1.bias",                  "colwise"            },
        {"model.decoder.layers.#.fc2.weight",                "rowwise"            },
        {"model.decoder.layers.#.fc2.bias",                  "bias"               },
        {"model.decoder.layers.#.final_layer_norm.weight",   "norm"               },
        {"model.decoder.final_layer_norm.weight",            "norm"               },
        {"model.decoder.project_in.weight",                  "replicated"         },
    };
    (void)state;
    check_family("OPTForCausalLM", "opt", "opt", cases, SW_COUNT(cases));
}

static void positions_have_two_more_rows(void **state)
{
    static const config_case cases[] = {
        {"model.decoder.embed_positions.weight", "18x32", "replicated position"},
        {"model.decoder.layers.0.fc1.weight",    "64x32", "colwise"            },
        {"model.decoder.project_in.weight",      NULL,    NULL                 },
        {"lm_head.weight",                       NULL,    NULL                 },
    };
    (void)state;
    check_config("{\"model_type\": \"opt\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"vocab_size\": 100, \"ffn_dim\": 64, "
                 "\"max_position_embeddings\": 16}",
                 cases, SW_COUNT(cases));
}

static void a_narrow_embedding_has_projections_and_norms_behind_the_sums_leave_out_the_final_one(void **state)
{
    static const config_case cases[] = {
        {"model.decoder.embed_tokens.weight",     "100x8", "embed vocab"},
        {"model.decoder.project_in.weight",       "32x8",  "replicated" },
        {"model.decoder.project_out.weight",      "8x32",  "replicated" },
        {"model.decoder.final_layer_norm.weight", NULL,    NULL         },
    };
    (void)state;
    check_config("{\"model_type\": \"opt\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"vocab_size\": 100, \"ffn_dim\": 64, "
                 "\"max_position_embeddings\": 16, \"word_embed_proj_dim\": 8, "
                 "\"do_layer_norm_before\": false}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(positions_have_two_more_rows),
        cmocka_unit_test(
            a_narrow_embedding_has_projections_and_norms_behind_the_sums_leave_out_the_final_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
