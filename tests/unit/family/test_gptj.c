/*
 * GPT-J: separate projections without biases, a head with one.
 */
#include "family_case.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.h.#.attn.q_proj.weight",   "colwise heads"       },
        {"transformer.h.#.attn.k_proj.weight",   "colwise heads"       },
        {"transformer.h.#.attn.out_proj.weight", "rowwise heads"       },
        {"transformer.h.#.attn.bias",            "skip buffer optional"},
        {"transformer.h.#.attn.masked_bias",     "skip buffer optional"},
        {"transformer.h.#.mlp.fc_in.weight",     "colwise"             },
        {"transformer.h.#.mlp.fc_in.bias",       "colwise"             },
        {"transformer.h.#.mlp.fc_out.weight",    "rowwise"             },
        {"transformer.h.#.mlp.fc_out.bias",      "bias"                },
        {"lm_head.weight",                       "lm_head vocab"       },
        {"lm_head.bias",                         "lm_head vocab"       },
    };
    (void)state;
    check_family("GPTJForCausalLM", "gptj", "gptj", cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
