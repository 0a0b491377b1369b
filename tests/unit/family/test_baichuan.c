/*
 * Baichuan: W_pack is query, key, value one below the other.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.W_pack.weight",       "fused_qkv qkv_stacked"},
        {"model.layers.#.self_attn.o_proj.weight",       "rowwise heads"        },
        {"model.layers.#.self_attn.rotary_emb.inv_freq", "skip buffer optional" },
        {"model.layers.#.mlp.gate_proj.weight",          "colwise"              },
        {"model.layers.#.mlp.down_proj.weight",          "rowwise"              },
        {"lm_head.weight",                               "lm_head vocab"        },
    };
    (void)state;
    check_family("BaichuanForCausalLM", "baichuan", "baichuan", cases, SW_COUNT(cases));
}

static void the_pack_has_three_times_the_width(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.W_pack.weight", "96x32", "fused_qkv qkv_stacked"},
    };
    (void)state;
    check_config("{\"model_type\": \"baichuan\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_pack_has_three_times_the_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
