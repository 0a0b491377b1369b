/*
 * MiniCPM: Llama with a tied head.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_proj.weight", "colwise heads"},
        {"model.layers.#.mlp.down_proj.weight",    "rowwise"      },
        {"lm_head.weight",                         "lm_head vocab"},
    };
    (void)state;
    check_family("MiniCPMForCausalLM", "minicpm", "minicpm", cases, SW_COUNT(cases));
}

static void the_head_is_tied_by_default(void **state)
{
    static const config_case cases[] = {
        {"model.norm.weight", "32", "norm"},
        {"lm_head.weight",    NULL, NULL  },
    };
    (void)state;
    check_config("{\"model_type\": \"minicpm\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 64, \"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_head_is_tied_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
