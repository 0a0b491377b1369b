/*
 * Pipeline stages: what enters the layers stands on the first stage, what works behind them on the last,
 * wherever a class registers it. Every family is asked, on a config that has a number for all of them. And
 * what is said of towers, which stand before the stages' layers.
 */
#include "plan/finish.h"

#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "family/family.h"

/* clang-format off */
#define NUMBERS                                                                                              \
    "'hidden_size': 64, 'n_embd': 64, 'd_model': 64, 'num_hidden_layers': 2, 'n_layer': 2, 'n_layers': 2, "  \
    "'num_layers': 2, 'num_attention_heads': 4, 'n_head': 4, 'n_heads': 4, 'num_key_value_heads': 4, "       \
    "'intermediate_size': 128, 'ffn_dim': 128, 'n_inner': 128, 'head_dim': 16, 'vocab_size': 100, "          \
    "'max_position_embeddings': 32, 'n_positions': 32, 'num_experts': 4, 'num_local_experts': 4, "           \
    "'n_routed_experts': 4, 'num_experts_per_tok': 2, 'moe_intermediate_size': 32, "                         \
    "'num_shared_experts': 1, 'shared_expert_intermediate_size': 32, 'qk_nope_head_dim': 16, "               \
    "'qk_rope_head_dim': 8, 'v_head_dim': 16, 'kv_lora_rank': 16, 'linear_num_key_heads': 2, "               \
    "'linear_num_value_heads': 4, 'linear_key_head_dim': 16, 'linear_value_head_dim': 16, "                  \
    "'linear_conv_kernel_dim': 4, 'linear_attn_config': {'head_dim': 16, 'num_heads': 4, "                   \
    "'short_conv_kernel_size': 4, 'kda_layers': [1], 'full_attn_layers': [2]}, 'vision_config': "            \
    "{'hidden_size': 32, 'intermediate_size': 64, 'num_hidden_layers': 1, 'num_attention_heads': 2, "        \
    "'image_size': 28, 'patch_size': 14, 'num_channels': 3, 'vision_output_dim': 32, "                       \
    "'projector_input_dim': 32, 'projector_output_dim': 32}, 'tie_word_embeddings': false"
/* clang-format on */

/* Modules that work before the layers; every other one outside them works behind them. */
static bool is_entry(const sw_spec *spec)
{
    static const char *const entries[] = {"embed_tokens",
                                          "embed_positions",
                                          "project_in",
                                          "embed_in",
                                          "embeddings",
                                          "tok_embeddings",
                                          "word_embeddings",
                                          "word_embeddings_layernorm",
                                          "wte",
                                          "wpe"};
    const char *dot = strrchr(spec->fqn, '.');
    const char *name = dot == NULL ? spec->fqn : dot + 1;

    for (size_t i = 0; i < SW_COUNT(entries); i++) {
        if (strcmp(name, entries[i]) == 0)
            return true;
    }
    return false;
}

static void check_stages(const char *config)
{
    tiny t = TINY_PLAN(.config = config, .mesh = "pp=2");
    bool is_behind = false;

    for (uint32_t i = 0; i < t.plan->n_specs; i++) {
        const sw_spec *s = &t.plan->specs[i];
        if (s->is_tower)
            continue;
        if (s->layer < 0 && s->pp_stage != (is_entry(s) ? 0U : 1U))
            fail_msg("%s: %s is on stage %u", t.plan->family, s->fqn, s->pp_stage);
        /* model order is the order of the work */
        if (s->pp_stage == 0 && is_behind)
            fail_msg("%s: %s stands behind the last stage", t.plan->family, s->fqn);
        is_behind = s->pp_stage == 1;
    }
    tiny_drop(&t);
}

static void every_family_ends_on_the_last_stage(void **state)
{
    char config[4096];
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        (void)snprintf(config, sizeof config, "'architectures': ['%s'], 'model_type': '%s', %s",
                       (*family)->architectures[0], (*family)->model_types[0], NUMBERS);
        check_stages(config);
    }
}

static void the_projections_of_a_narrow_embedding_stand_beside_it_and_before_the_head(void **state)
{
    static const char config[] = "'architectures': ['OPTForCausalLM'], 'model_type': 'opt', "
                                 "'word_embed_proj_dim': 32, " NUMBERS;
    static const struct {
        const char *fqn;
        uint32_t stage;
    } cases[] = {
        {"model.decoder.embed_tokens", 0},
        {"model.decoder.project_in",   0},
        {"model.decoder.project_out",  1},
        {"lm_head",                    1},
    };
    tiny t = TINY_PLAN(.config = config, .mesh = "pp=2");
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++)
        assert_int_equal(tiny_spec(&t, cases[i].fqn)->pp_stage, cases[i].stage);
    tiny_drop(&t);
    check_stages(config);
}

/* ---- towers ---- */

#define LLAVA "'architectures': ['LlavaForConditionalGeneration'], 'model_type': 'llava', " NUMBERS
#define LLAMA "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', " NUMBERS

static void the_axes_that_cut_the_text_are_told_to_a_tower(void **state)
{
    static const struct {
        tiny_case what;
        const char *axes; /* NULL: nothing is said */
    } cases[] = {
        {{.config = LLAVA, .mesh = "cp=2,tp=2"},                "partial sum over tp and cp"},
        {{.config = LLAVA, .mesh = "tp=2"},                     "partial sum over tp"       },
        {{.config = LLAVA, .mesh = "cp=2,tp=2", .no_sp = true}, "partial sum over cp"       },
        {{.config = LLAVA, .mesh = "dp=2,tp=2", .no_sp = true}, NULL                        },
        {{.config = LLAVA, .mesh = "dp=2"},                     NULL                        },
        {{.config = LLAMA, .mesh = "cp=2,tp=2"},                NULL                        },
    };
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        tiny t = tiny_plan(&cases[i].what);
        if (cases[i].axes == NULL)
            tiny_silent(&t, "tower_exit");
        else
            tiny_finding(&t, SW_SEVERITY_NOTE, "tower_exit", cases[i].axes, "before its backward");
        tiny_drop(&t);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_ends_on_the_last_stage),
        cmocka_unit_test(the_axes_that_cut_the_text_are_told_to_a_tower),
        cmocka_unit_test(the_projections_of_a_narrow_embedding_stand_beside_it_and_before_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
