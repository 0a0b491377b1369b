/*
 * GPT-Neo: names like GPT-2, linears like everyone.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.h.#.attn.attention.q_proj.weight",   "colwise heads"       },
        {"transformer.h.#.attn.attention.out_proj.weight", "rowwise heads"       },
        {"transformer.h.#.attn.attention.out_proj.bias",   "bias"                },
        {"transformer.h.#.attn.attention.bias",            "skip buffer optional"},
        {"transformer.h.#.mlp.c_fc.weight",                "colwise"             },
        {"transformer.h.#.mlp.c_fc.bias",                  "colwise"             },
        {"transformer.h.#.mlp.c_proj.weight",              "rowwise"             },
        {"transformer.wpe.weight",                         "replicated position" },
    };
    (void)state;
    check_family("GPTNeoForCausalLM", "gpt_neo", "gpt_neo", cases, SW_COUNT(cases));
}

static void its_own_spellings_are_understood(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.mlp.c_fc.weight", "128x32", "colwise"            },
        {"transformer.wpe.weight",          "16x32",  "replicated position"},
        {"lm_head.weight",                  NULL,     NULL                 },
    };
    (void)state;
    check_config("{\"model_type\": \"gpt_neo\", \"hidden_size\": 32, \"num_layers\": 1, "
                 "\"num_heads\": 8, \"intermediate_size\": null, "
                 "\"max_position_embeddings\": 16, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(its_own_spellings_are_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
