/*
 * Granite MoE: experts stacked in three dimensions.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.block_sparse_moe.input_linear.weight",  "moe_expert stacked 2 out experts"},
        {"model.layers.#.block_sparse_moe.output_linear.weight", "moe_expert in experts"           },
        {"model.layers.#.block_sparse_moe.router.layer.weight",  "moe_gate"                        },
        {"model.layers.#.shared_mlp.input_linear.weight",        "shared_expert stacked 2 out"     },
        {"model.layers.#.shared_mlp.output_linear.weight",       "shared_expert in"                },
    };
    (void)state;
    check_family("GraniteMoeForCausalLM", "granitemoe", "granitemoe", cases, SW_COUNT(cases));
}

static void experts_stand_in_one_tensor(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.block_sparse_moe.input_linear.weight",  "4x32x32",
         "moe_expert stacked 2 out experts"                                                        },
        {"model.layers.0.block_sparse_moe.output_linear.weight", "4x32x16", "moe_expert in experts"},
        {"model.layers.0.shared_mlp.input_linear.weight",        NULL,      NULL                   },
    };
    (void)state;
    check_config("{\"model_type\": \"granitemoe\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 16, \"vocab_size\": 100, "
                 "\"num_local_experts\": 4}",
                 cases, SW_COUNT(cases));
}

static void a_shared_mlp_follows_from_its_size(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.shared_mlp.input_linear.weight",  "16x32", "shared_expert stacked 2 out"},
        {"model.layers.0.shared_mlp.output_linear.weight", "32x8",  "shared_expert in"           },
    };
    (void)state;
    check_config("{\"model_type\": \"granitemoeshared\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, "
                 "\"intermediate_size\": 16, \"vocab_size\": 100, \"num_local_experts\": 4, "
                 "\"shared_intermediate_size\": 8}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(experts_stand_in_one_tensor),
        cmocka_unit_test(a_shared_mlp_follows_from_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
