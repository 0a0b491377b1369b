/*
 * Command R: a q/k norm with a row of weights for each head.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"model.layers.#.self_attn.q_norm.weight", "norm heads"   },
        {"model.layers.#.self_attn.k_norm.weight", "norm kv_heads"},
        {"model.layers.#.self_attn.o_proj.weight", "rowwise heads"},
        {"model.layers.#.input_layernorm.weight",  "norm"         },
    };
    (void)state;
    check_family("CohereForCausalLM", "cohere", "cohere", cases, SW_COUNT(cases));
}

static void norms_have_a_row_for_each_head(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_norm.weight",         "8x4", "norm heads"   },
        {"model.layers.0.self_attn.k_norm.weight",         "2x4", "norm kv_heads"},
        {"lm_head.weight",                                 NULL,  NULL           },
        {"model.layers.0.post_attention_layernorm.weight", NULL,  NULL           },
    };
    (void)state;
    check_config("{\"model_type\": \"cohere\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100, \"num_key_value_heads\": 2, \"use_qk_norm\": true}",
                 cases, SW_COUNT(cases));
}

static void the_small_model_has_no_such_norms(void **state)
{
    static const config_case cases[] = {
        {"model.layers.0.self_attn.q_norm.weight", NULL, NULL},
    };
    (void)state;
    check_config("{\"model_type\": \"cohere\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 8, \"intermediate_size\": 64, "
                 "\"vocab_size\": 100}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(norms_have_a_row_for_each_head),
        cmocka_unit_test(the_small_model_has_no_such_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
