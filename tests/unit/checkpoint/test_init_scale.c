/*
 * Which rule a parameter gets, in words: "normal 0.02", "constant 0", "uniform 0.5". The rows of a test are
 * names of one family with the shape that its config gives them.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/init_scale.h"

typedef struct rule_case {
    const char *name;
    const char *words;
    uint64_t dims[4]; /* ended by 0 */
} rule_case;

static const char *words_of(const sw_init_rule *rule)
{
    static char text[64];
    static const char *const kinds[] = {"constant",  "normal",      "uniform",
                                        "log count", "log uniform", "time step"};
    double b = rule->kind == SW_INIT_LOG_COUNT ? (double)rule->period : rule->b;

    if (b > 0.0)
        (void)snprintf(text, sizeof text, "%s %.4g %.4g", kinds[rule->kind], rule->a, b);
    else
        (void)snprintf(text, sizeof text, "%s %.4g", kinds[rule->kind], rule->a);
    return text;
}

static void check(const char *model_type, double deviation, double factor, const rule_case *cases, size_t n)
{
    char json[128];
    sw_config config = {0};
    sw_error err = {0};

    (void)snprintf(json, sizeof json,
                   "{\"model_type\": \"%s\", \"num_hidden_layers\": 8, \"hidden_size\": 64}", model_type);
    if (sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_non_null(config.family);
    sw_init_scale scale = sw_init_scale_of(&config, deviation, factor);
    for (size_t i = 0; i < n; i++) {
        _Alignas(sw_shape) unsigned char room[sizeof(sw_shape) + sizeof cases->dims];
        sw_shape *shape = (sw_shape *)(void *)room;
        shape->elems = 1;
        shape->n_dims = 0;
        for (size_t d = 0; d < 4 && cases[i].dims[d] != 0; d++) {
            shape->dims[shape->n_dims++] = cases[i].dims[d];
            shape->elems *= cases[i].dims[d];
        }
        sw_init_rule rule = sw_init_rule_of(&scale, cases[i].name, strlen(cases[i].name), shape);
        if (strcmp(words_of(&rule), cases[i].words) != 0)
            fail_msg("%s: %s is \"%s\", not \"%s\"", model_type, cases[i].name, words_of(&rule),
                     cases[i].words);
    }
    sw_config_clear(&config);
}

static void most_families_are_normal_with_the_configs_deviation(void **state)
{
    static const rule_case cases[] = {
        {"model.embed_tokens.weight",              "normal 0.03", {100, 64}},
        {"model.layers.7.self_attn.o_proj.weight", "normal 0.03", {64, 64} },
        {"model.layers.7.mlp.down_proj.weight",    "normal 0.03", {64, 64} },
        {"model.layers.7.self_attn.q_proj.bias",   "constant 0",  {64}     },
        {"model.layers.7.input_layernorm.weight",  "constant 1",  {64}     },
        {"model.norm.weight",                      "constant 1",  {64}     },
        {"lm_head.weight",                         "normal 0.03", {100, 64}},
    };

    (void)state;
    check("llama", 0.03, 1.0, cases, SW_COUNT(cases));
}

static void a_silent_config_means_the_familys_deviation(void **state)
{
    static const rule_case usual[] = {
        {"lm_head.weight", "normal 0.02", {100, 64}}
    };
    static const rule_case own[] = {
        {"lm_head.weight", "normal 0.01804", {100, 64}}
    };

    (void)state;
    check("llama", -1.0, 1.0, usual, SW_COUNT(usual));
    check("starcoder2", -1.0, 1.0, own, SW_COUNT(own));
}

static void the_factor_is_on_deviations_and_widths_alone(void **state)
{
    static const rule_case dense[] = {
        {"lm_head.weight",                        "normal 0.04", {100, 64}},
        {"model.layers.0.input_layernorm.weight", "constant 1",  {64}     },
        {"model.layers.0.self_attn.q_proj.bias",  "constant 0",  {64}     },
    };
    static const rule_case mixer[] = {
        {"backbone.layers.0.mixer.conv1d.weight", "uniform 1",           {128, 1, 4}},
        {"backbone.layers.0.mixer.dt_proj.bias",  "time step 0.001 0.1", {128}      },
        {"backbone.layers.0.mixer.D",             "constant 1",          {128}      },
    };

    (void)state;
    check("llama", 0.02, 2.0, dense, SW_COUNT(dense));
    check("mamba", 0.1, 2.0, mixer, SW_COUNT(mixer));
}

static void gpt2_divides_what_it_adds_to_the_residual_stream(void **state)
{
    static const rule_case cases[] = {
        {"wte.weight",             "normal 0.02",  {100, 64}},
        {"wpe.weight",             "normal 0.02",  {32, 64} },
        {"h.0.attn.c_attn.weight", "normal 0.02",  {64, 192}},
        {"h.0.attn.c_proj.weight", "normal 0.005", {64, 64} },
        {"h.0.mlp.c_fc.weight",    "normal 0.02",  {64, 256}},
        {"h.0.mlp.c_proj.weight",  "normal 0.005", {256, 64}},
        {"h.0.mlp.c_proj.bias",    "constant 0",   {64}     },
        {"h.0.ln_1.weight",        "constant 1",   {64}     },
        {"h.0.ln_1.bias",          "constant 0",   {64}     },
    };

    (void)state;
    check("gpt2", 0.02, 1.0, cases, SW_COUNT(cases));
    static const rule_case bigcode[] = {
        {"transformer.h.3.mlp.c_proj.weight", "normal 0.005", {64, 256}},
        {"transformer.h.3.mlp.c_fc.weight",   "normal 0.02",  {256, 64}},
    };
    check("gpt_bigcode", 0.02, 1.0, bigcode, SW_COUNT(bigcode));
}

static void norms_that_add_one_begin_at_zero(void **state)
{
    static const rule_case gemma[] = {
        {"model.norm.weight",                     "constant 0", {64}},
        {"model.layers.0.input_layernorm.weight", "constant 0", {64}},
    };
    static const rule_case gemma3[] = {
        {"model.layers.0.self_attn.q_norm.weight", "constant 0", {16}},
    };
    static const rule_case qwen3_next[] = {
        {"model.layers.0.input_layernorm.weight",  "constant 0", {64}},
        {"model.layers.3.self_attn.q_norm.weight", "constant 0", {16}},
        {"mtp.norm.weight",                        "constant 0", {64}},
        {"model.layers.0.linear_attn.norm.weight", "constant 1", {16}}, /* inside the mixer: plain */
    };
    static const rule_case cohere[] = {
        {"model.norm.weight", "constant 1", {64}},
    };

    (void)state;
    check("gemma", 0.02, 1.0, gemma, SW_COUNT(gemma));
    check("gemma2", 0.02, 1.0, gemma, SW_COUNT(gemma));
    check("gemma3_text", 0.02, 1.0, gemma, SW_COUNT(gemma));
    check("gemma3_text", 0.02, 1.0, gemma3, SW_COUNT(gemma3));
    check("qwen3_next", 0.02, 1.0, qwen3_next, SW_COUNT(qwen3_next));
    check("cohere", 0.02, 1.0, cohere, SW_COUNT(cohere));
}

static void a_mixers_decays_and_steps_begin_in_their_range(void **state)
{
    static const rule_case mamba[] = {
        {"backbone.embeddings.weight",              "normal 0.1",          {100, 64}  },
        {"backbone.layers.1.norm.weight",           "constant 1",          {64}       },
        {"backbone.layers.1.mixer.A_log",           "log count 0 16",      {128, 16}  },
        {"backbone.layers.1.mixer.D",               "constant 1",          {128}      },
        {"backbone.layers.1.mixer.conv1d.weight",   "uniform 0.5",         {128, 1, 4}},
        {"backbone.layers.1.mixer.conv1d.bias",     "constant 0",          {128}      },
        {"backbone.layers.1.mixer.in_proj.weight",  "uniform 0.125",       {256, 64}  },
        {"backbone.layers.1.mixer.dt_proj.weight",  "uniform 0.5",         {128, 4}   },
        {"backbone.layers.1.mixer.dt_proj.bias",    "time step 0.001 0.1", {128}      },
        {"backbone.layers.1.mixer.out_proj.weight", "uniform 0.03125",     {64, 128}  }, /* 1/sqrt(128 * 8) */
    };
    static const rule_case delta[] = {
        {"model.layers.0.linear_attn.A_log",           "log uniform 1 16",    {4}        },
        {"model.layers.0.linear_attn.dt_bias",         "time step 0.001 0.1", {4}        },
        {"model.layers.0.linear_attn.conv1d.weight",   "uniform 0.5",         {128, 1, 4}},
        {"model.layers.0.linear_attn.out_proj.weight", "normal 0.02",         {64, 64}   },
    };
    static const rule_case kimi[] = {
        {"model.layers.0.self_attn.A_log",                               "log uniform 1 16", {1, 1, 4, 1}},
        {"model.layers.0.self_attn.q_conv1d.weight",                     "uniform 0.5",      {64, 1, 4}  },
        {"model.layers.1.block_sparse_moe.gate.e_score_correction_bias", "constant 0",       {8}         },
        {"model.layers.1.block_sparse_moe.gate.weight",                  "normal 0.02",      {8, 64}     },
    };

    (void)state;
    check("mamba", -1.0, 1.0, mamba, SW_COUNT(mamba));
    check("qwen3_next", 0.02, 1.0, delta, SW_COUNT(delta));
    check("kimi_linear", 0.02, 1.0, kimi, SW_COUNT(kimi));
}

static void what_no_row_knows_is_decided_by_its_name(void **state)
{
    static const rule_case cases[] = {
        {"adapter.weight", "normal 0.02", {4, 4}},
        {"adapter.bias",   "constant 0",  {4}   },
        {"adapter.D",      "normal 0.02", {4}   }, /* of no mixer */
    };
    char name[700];

    (void)state;
    check("llama", 0.02, 1.0, cases, SW_COUNT(cases));
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const rule_case longest[] = {
        {name, "normal 0.02", {4}}
    };
    check("llama", 0.02, 1.0, longest, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(most_families_are_normal_with_the_configs_deviation),
        cmocka_unit_test(a_silent_config_means_the_familys_deviation),
        cmocka_unit_test(the_factor_is_on_deviations_and_widths_alone),
        cmocka_unit_test(gpt2_divides_what_it_adds_to_the_residual_stream),
        cmocka_unit_test(norms_that_add_one_begin_at_zero),
        cmocka_unit_test(a_mixers_decays_and_steps_begin_in_their_range),
        cmocka_unit_test(what_no_row_knows_is_decided_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
