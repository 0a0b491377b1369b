/*
 * Mamba: every layer is a mixer, whole over tp.
 */
#include "family_config.h"

static void names_have_their_role_and_layout(void **state)
{
    static const family_case cases[] = {
        {"backbone.embeddings.weight",              "embed vocab"     },
        {"backbone.layers.#.norm.weight",           "norm"            },
        {"backbone.layers.#.mixer.A_log",           "special mixer"   },
        {"backbone.layers.#.mixer.D",               "replicated mixer"},
        {"backbone.layers.#.mixer.x_proj.weight",   "replicated mixer"},
        {"backbone.layers.#.mixer.out_proj.weight", "replicated mixer"},
    };
    (void)state;
    check_family("MambaForCausalLM", "mamba", "mamba", cases, SW_COUNT(cases));
}

static void sizes_follow_from_the_class_defaults(void **state)
{
    static const config_case cases[] = {
        {"backbone.layers.0.mixer.in_proj.weight", "160x40", "replicated mixer"},
        {"backbone.layers.0.mixer.x_proj.weight",  "35x80",  "replicated mixer"},
        {"backbone.layers.0.mixer.conv1d.weight",  "80x1x4", "replicated mixer"},
        {"backbone.layers.0.mixer.conv1d.bias",    "80",     "replicated mixer"},
        {"backbone.layers.0.mixer.in_proj.bias",   NULL,     NULL              },
        {"lm_head.weight",                         NULL,     NULL              },
    };
    (void)state;
    check_config("{\"model_type\": \"mamba\", \"hidden_size\": 40, \"num_hidden_layers\": 1, "
                 "\"vocab_size\": 100, \"time_step_rank\": \"auto\"}",
                 cases, SW_COUNT(cases));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_role_and_layout),
        cmocka_unit_test(sizes_follow_from_the_class_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
