/*
 * Llama 4: stacked transposed experts, dense layers between, a vision tower.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"language_model.model.layers.#.feed_forward.experts.gate_up_proj",
         "moe_expert stacked 2 out experts_t"                                                                  },
        {"language_model.model.layers.#.feed_forward.experts.down_proj",              "moe_expert in experts_t"},
        {"language_model.model.layers.#.feed_forward.router.weight",                  "moe_gate"               },
        {"language_model.model.layers.#.feed_forward.shared_expert.gate_proj.weight", "shared_expert out"      },
        {"language_model.model.layers.#.feed_forward.down_proj.weight",               "rowwise"                },
        {"vision_model.positional_embedding_vlm",                                     "replicated"             },
        {"vision_model.model.layers.#.self_attn.q_proj.weight",                       "colwise heads"          },
        {"vision_model.model.layers.#.mlp.fc2.weight",                                "rowwise"                },
        {"vision_model.vision_adapter.mlp.fc1.weight",                                "replicated"             },
    };
    (void)state;
    check_family("Llama4ForConditionalGeneration", "llama4", "llama4", cases, SW_COUNT(cases));
}

static void every_second_layer_is_sparse(void **state)
{
    static const config_case cases[] = {
        {"language_model.model.layers.0.feed_forward.gate_proj.weight",             "24x32",   "colwise"   },
        {"language_model.model.layers.0.feed_forward.experts.down_proj",            NULL,      NULL        },
        {"language_model.model.layers.1.feed_forward.experts.gate_up_proj",         "4x32x32",
         "moe_expert stacked 2 out experts_t"                                                              },
        {"language_model.model.layers.1.feed_forward.experts.down_proj",            "4x16x32",
         "moe_expert in experts_t"                                                                         },
        {"language_model.model.layers.1.feed_forward.shared_expert.up_proj.weight", "16x32",
         "shared_expert out"                                                                               },
        {"vision_model.patch_embedding.linear.weight",                              "16x12",   "replicated"},
        {"vision_model.model.layers.1.mlp.fc1.weight",                              NULL,      NULL        },
    };
    (void)state;
    check_config("{\"model_type\": \"llama4\", "
                 "\"text_config\": {\"model_type\": \"llama4_text\", \"hidden_size\": 32, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
                 "\"num_key_value_heads\": 2, \"intermediate_size\": 16, "
                 "\"intermediate_size_mlp\": 24, \"interleave_moe_layer_step\": 2, "
                 "\"num_local_experts\": 4, \"vocab_size\": 100}, "
                 "\"vision_config\": {\"hidden_size\": 16, \"num_hidden_layers\": 1, "
                 "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"patch_size\": 2, "
                 "\"image_size\": 6, \"projector_input_dim\": 12, "
                 "\"projector_output_dim\": 12, \"vision_output_dim\": 12}}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(every_second_layer_is_sparse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
