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
#include "page.h"

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

/* ---- the page ---- */

/* The first parameter of a family for which `wants` holds, as a row of its table; NULL: there is none. */
static const sw_family_row *find_row(const sw_family *family, bool (*wants)(const sw_family_row *row))
{
    for (const sw_family_block *block = family->blocks; *block != NULL; block++) {
        for (const sw_family_row *row = *block; row->name != NULL; row++) {
            if (wants(row))
                return row;
        }
    }
    return NULL;
}

static bool is_plain_norm(const sw_family_row *row)
{
    return row->role == SW_ROLE_NORM && (row->flags & SW_ROW_MIXER) == 0 &&
           strstr(row->name, ".weight") != NULL;
}

static bool is_projection_of_mixer(const sw_family_row *row)
{
    return (row->flags & SW_ROW_MIXER) != 0 && strstr(row->name, "in_proj") != NULL;
}

static sw_init_rule rule_of(const sw_init_scale *scale, const sw_family_row *row)
{
    char name[256];
    _Alignas(sw_shape) unsigned char room[sizeof(sw_shape) + 2 * sizeof(uint64_t)];
    sw_shape *shape = (sw_shape *)(void *)room;

    *shape = (sw_shape){.n_dims = 2, .elems = 16};
    shape->dims[0] = 4;
    shape->dims[1] = 4;
    (void)snprintf(name, sizeof name, "%s", row->name);
    for (char *at = name; (at = strchr(at, '#')) != NULL;)
        *at = '0';
    return sw_init_rule_of(scale, name, strlen(name), shape);
}

static void number(char text[32], double value)
{
    (void)snprintf(text, 32, "%g", value);
}

/* The row of a family as the page has it; false when nothing differs. */
static bool describe(const sw_family *family, char cells[5][32])
{
    char json[128];
    sw_config config = {0};
    sw_error err = {0};

    (void)snprintf(json, sizeof json, "{\"model_type\": \"%s\", \"num_hidden_layers\": 8}",
                   family->model_types[0]);
    assert_int_equal(sw_config_read(&config, sw_file_map_of(json, strlen(json)), "config.json", &err), SW_OK);
    sw_init_scale scale = sw_init_scale_of(&config, -1.0, 1.0);
    memset(cells, 0, 5 * sizeof cells[0]);
    (void)snprintf(cells[0], sizeof cells[0], "%s", family->name);
    if (scale.deviation != 0.02)
        number(cells[1], scale.deviation);
    if (scale.residual != 1.0)
        number(cells[2], 1.0 / (scale.residual * scale.residual * 8.0));
    const sw_family_row *norm = find_row(family, is_plain_norm);
    if (norm != NULL && rule_of(&scale, norm).a != 1.0)
        number(cells[3], rule_of(&scale, norm).a);
    const sw_family_row *mixer = find_row(family, is_projection_of_mixer);
    if (mixer != NULL && rule_of(&scale, mixer).kind == SW_INIT_UNIFORM)
        (void)snprintf(cells[4], sizeof cells[4], "uniform");
    sw_config_clear(&config);
    return cells[1][0] != '\0' || cells[2][0] != '\0' || cells[3][0] != '\0' || cells[4][0] != '\0';
}

static void the_page_lists_what_differs_in_a_family(void **state)
{
    static page_table table;
    char cells[5][32];
    size_t row = 0;

    (void)state;
    page_open(&table, "init.md", "Families");
    for (size_t i = 0; sw_families[i] != NULL; i++) {
        if (!describe(sw_families[i], cells))
            continue;
        const char *wanted[] = {cells[0], cells[1], cells[2], cells[3], cells[4], NULL};
        page_check_row(&table, row++, wanted);
    }
    assert_int_equal(row, table.n_rows);
    page_close(&table);
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
        cmocka_unit_test(the_page_lists_what_differs_in_a_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
