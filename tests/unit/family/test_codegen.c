/*
 * CodeGen: a fused projection in four blocks.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.h.#.attn.qkv_proj.weight", "fused_qkv qkv_blocks 4"},
        {"transformer.h.#.attn.out_proj.weight", "rowwise heads"         },
        {"transformer.h.#.attn.causal_mask",     "skip buffer optional"  },
        {"transformer.h.#.mlp.fc_in.weight",     "colwise"               },
        {"transformer.h.#.mlp.fc_out.weight",    "rowwise"               },
        {"lm_head.bias",                         "lm_head vocab"         },
    };
    (void)state;
    check_family("CodeGenForCausalLM", "codegen", "codegen", cases, SW_COUNT(cases));
}

static void the_fused_projection_has_three_times_the_width(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.attn.qkv_proj.weight", "96x32",  "fused_qkv qkv_blocks 4"},
        {"transformer.h.0.mlp.fc_in.weight",     "128x32", "colwise"               },
        {"lm_head.bias",                         "100",    "lm_head vocab"         },
    };
    (void)state;
    check_config("{\"model_type\": \"codegen\", \"n_embd\": 32, \"n_layer\": 1, \"n_head\": 8, "
                 "\"n_positions\": 16, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_fused_projection_has_three_times_the_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
