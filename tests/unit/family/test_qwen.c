/*
 * Qwen, the first: intermediate_size counts both halves.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"transformer.h.#.attn.c_attn.weight", "fused_qkv qkv_stacked"},
        {"transformer.h.#.attn.c_attn.bias",   "fused_qkv qkv_stacked"},
        {"transformer.h.#.attn.c_proj.weight", "rowwise heads"        },
        {"transformer.h.#.mlp.w1.weight",      "colwise"              },
        {"transformer.h.#.mlp.w2.weight",      "colwise"              },
        {"transformer.h.#.mlp.c_proj.weight",  "rowwise"              },
        {"lm_head.weight",                     "lm_head vocab"        },
    };
    (void)state;
    check_family("QWenLMHeadModel", "qwen", "qwen", cases, SW_COUNT(cases));
}

static void each_half_is_half_of_intermediate_size(void **state)
{
    static const config_case cases[] = {
        {"transformer.h.0.mlp.w1.weight",     "32x32", "colwise"},
        {"transformer.h.0.mlp.w2.weight",     "32x32", "colwise"},
        {"transformer.h.0.mlp.c_proj.weight", "32x32", "rowwise"},
        {"transformer.h.0.mlp.c_proj.bias",   NULL,    NULL     },
    };
    (void)state;
    check_config("{\"model_type\": \"qwen\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(each_half_is_half_of_intermediate_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
