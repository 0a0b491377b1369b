/*
 * InternLM 2: a projection fused by key/value group, and short names.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.tok_embeddings.weight",           "embed vocab"          },
        {"model.layers.#.attention.wqkv.weight",  "fused_qkv qkv_grouped"},
        {"model.layers.#.attention.wo.weight",    "rowwise heads"        },
        {"model.layers.#.feed_forward.w1.weight", "colwise"              },
        {"model.layers.#.feed_forward.w3.weight", "colwise"              },
        {"model.layers.#.feed_forward.w2.weight", "rowwise"              },
        {"model.layers.#.attention_norm.weight",  "norm"                 },
        {"model.layers.#.ffn_norm.weight",        "norm"                 },
        {"output.weight",                         "lm_head vocab"        },
    };
    (void)state;
    check_family("InternLM2ForCausalLM", "internlm2", "internlm2", cases, SW_COUNT(cases));
}

static void bias_is_for_attention_alone(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.attention.wqkv.weight",  "48x32", "fused_qkv qkv_grouped"},
        {"model.layers.0.attention.wqkv.bias",    "48",    "fused_qkv qkv_grouped"},
        {"model.layers.0.attention.wo.bias",      "32",    "bias"                 },
        {"model.layers.0.feed_forward.w2.weight", "32x64", "rowwise"              },
    };
    (void)state;
    check_config("{\"model_type\": \"internlm2\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100, "
                 "\"num_key_value_heads\": 2, \"bias\": true}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(bias_is_for_attention_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
