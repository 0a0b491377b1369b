/*
 * LLaVA: a CLIP tower, a projector, and a Llama of the class sizes.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"vision_tower.vision_model.embeddings.patch_embedding.weight",          "replicated"          },
        {"vision_tower.vision_model.embeddings.position_embedding.weight",       "replicated"          },
        {"vision_tower.vision_model.embeddings.position_ids",                    "skip buffer optional"},
        {"vision_tower.vision_model.pre_layrnorm.weight",                        "norm"                },
        {"vision_tower.vision_model.encoder.layers.#.self_attn.q_proj.bias",     "colwise heads"       },
        {"vision_tower.vision_model.encoder.layers.#.self_attn.out_proj.weight", "rowwise heads"       },
        {"vision_tower.vision_model.encoder.layers.#.mlp.fc1.weight",            "colwise"             },
        {"vision_tower.vision_model.encoder.layers.#.mlp.fc2.bias",              "bias"                },
        {"multi_modal_projector.linear_1.weight",                                "replicated"          },
        {"language_model.model.layers.#.self_attn.k_proj.weight",                "colwise kv_heads"    },
        {"language_model.lm_head.weight",                                        "lm_head vocab"       },
    };
    (void)state;
    check_family("LlavaForConditionalGeneration", "llava", "llava", cases, SW_COUNT(cases));
}

static void the_tower_has_its_own_layers_and_the_text_the_class_sizes(void **state)
{
    static const config_case cases[] = {
        {"vision_tower.vision_model.encoder.layers.1.mlp.fc1.weight",      "24x16",      "colwise"   },
        {"vision_tower.vision_model.encoder.layers.2.mlp.fc1.weight",      NULL,         NULL        },
        {"vision_tower.vision_model.embeddings.position_embedding.weight", "10x16",      "replicated"},
        {"vision_tower.vision_model.embeddings.patch_embedding.weight",    "16x3x2x2",   "replicated"},
        {"language_model.model.layers.0.mlp.up_proj.weight",               "11008x4096", "colwise"   },
        {"language_model.model.layers.1.mlp.up_proj.weight",               NULL,         NULL        },
    };
    (void)state;
    check_config("{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\", "
                 "\"num_hidden_layers\": 1, \"vocab_size\": 100}, "
                 "\"vision_config\": {\"hidden_size\": 16, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"patch_size\": 2, "
                 "\"image_size\": 6}}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(the_tower_has_its_own_layers_and_the_text_the_class_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
