/*
 * Finding families and rows by name, and that the tables are well formed: no name claimed twice, every
 * expression readable, every list ended.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "family/attributes.h"

static void task_suffixes_and_underscores_do_not_count(void **state)
{
    static const char *const cases[][2] = {
        {"Qwen2MoeForCausalLM",            "qwen2moe"       },
        {"qwen2_moe",                      "qwen2moe"       },
        {"deepseek-v3",                    "deepseekv3"     },
        {"LlavaForConditionalGeneration",  "llava"          },
        {"LlamaForSequenceClassification", "llama"          },
        {"XForImageTextToText",            "x"              },
        {"GPT2LMHeadModel",                "gpt2lmheadmodel"},
        {"",                               ""               },
        {NULL,                             ""               },
    };
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        char out[64];
        size_t length = sw_architecture_normalise(cases[i][0], out, sizeof out);
        assert_string_equal(out, cases[i][1]);
        assert_int_equal(length, strlen(cases[i][1]));
    }
}

static void a_long_name_is_cut_short(void **state)
{
    char out[5];
    (void)state;
    assert_int_equal(sw_architecture_normalise("LlamaForCausalLM", out, sizeof out), 4);
    assert_string_equal(out, "llam");
    assert_int_equal(sw_architecture_normalise("Llama", out, 0), 0);
}

static void the_architecture_decides_before_the_model_type(void **state)
{
    (void)state;
    assert_string_equal(sw_family_find("DeepseekV3ForCausalLM", "kimi_k2")->name, "deepseek_v3");
    assert_string_equal(sw_family_find("MistralForCausalLM", "llama")->name, "mistral");
    assert_string_equal(sw_family_find("NobodyForCausalLM", "llama")->name, "llama");
    assert_string_equal(sw_family_find(NULL, "kimi-k2")->name, "deepseek_v3");
    assert_string_equal(sw_family_find("", "qwen3_moe")->name, "qwen3_moe");
    assert_null(sw_family_find("NobodyForCausalLM", "nobody"));
    assert_null(sw_family_find(NULL, NULL));
    assert_null(sw_family_find("", ""));
}

static void no_name_is_claimed_by_two_families(void **state)
{
    (void)state;
    for (const sw_family *const *family = sw_families; *family != NULL; family++) {
        for (const char *const *name = (*family)->architectures; *name != NULL; name++)
            assert_string_equal(sw_family_find(*name, NULL)->name, (*family)->name);
        for (const char *const *name = (*family)->model_types; *name != NULL; name++)
            assert_string_equal(sw_family_find(NULL, *name)->name, (*family)->name);
    }
}

/* A table of its own, so that the rules show. */
static const sw_family_row rows[] = {
    {.name = "model.layers.#.mlp.up.weight",    .shape = "1"},
    {.name = "model.norm.weight",                                         .shape = "2"},
    {.name = "model.layers.#.head.norm.weight",.shape = "3"},
    {.name = "head.weight", .shape = "4"},
    {.name = "scale",                                         .shape = "5"},
    {.name = "layers.#.mlp.up.weight",                             .shape = "6"},
    {.name = "vision.layers.#.mlp.up.weight",                           .shape = "7"},
    {.name = "twice.weight",                                         .shape = "8", .when = "tied"},
    {.name = "twice.weight", .shape = "9", .when = "!tied"},
    {.name = NULL  },
};
static const sw_family_block row_blocks[] = {rows, NULL};
static const sw_family family = {.name = "made", .blocks = row_blocks};

static void check_match(const char *pattern, const char *name, int cut)
{
    int found_cut = 12345;
    const sw_family_row *row = sw_family_match(&family, pattern, strlen(pattern), &found_cut);
    if (name == NULL) {
        assert_null(row);
        return;
    }
    if (row == NULL) {
        fail_msg("%s finds nothing", pattern);
        return;
    }
    assert_string_equal(row->name, name);
    assert_int_equal(found_cut, cut);
}

static void the_very_name_beats_every_suffix(void **state)
{
    (void)state;
    check_match("model.layers.#.mlp.up.weight", "model.layers.#.mlp.up.weight", 0);
    check_match("layers.#.mlp.up.weight", "layers.#.mlp.up.weight", 0);
    check_match("vision.layers.#.mlp.up.weight", "vision.layers.#.mlp.up.weight", 0);
    check_match("model.norm.weight", "model.norm.weight", 0);
}

static void an_added_prefix_is_recognised(void **state)
{
    (void)state;
    check_match("language_model.model.norm.weight", "model.norm.weight", 15);
    check_match("x.vision.layers.#.mlp.up.weight", "vision.layers.#.mlp.up.weight", 2);
    check_match("decoder.head.weight", "head.weight", 8);
    check_match("a.b.scale", "scale", 4);
}

static void a_missing_prefix_is_recognised(void **state)
{
    (void)state;
    check_match("norm.weight", "model.norm.weight", -6);
    check_match("#.head.norm.weight", "model.layers.#.head.norm.weight", -13);
}

static void a_prefix_of_usual_wrappers_may_replace_another(void **state)
{
    (void)state;
    check_match("model.language_model.norm.weight", "model.norm.weight", 21);
    check_match("model.language_model.layers.#.head.norm.weight", "model.layers.#.head.norm.weight", 21);
    check_match("model.vision_tower.norm.weight", NULL, 0);
}

static void less_than_whole_segments_or_two_of_them_do_not_match(void **state)
{
    (void)state;
    check_match("weight", NULL, 0);
    check_match("other.weight", NULL, 0);
    check_match("subnorm.weight", NULL, 0);
    check_match("model.subhead.weight", NULL, 0);
    check_match("prescale", NULL, 0);
    check_match("", NULL, 0);
    check_match(".", NULL, 0);
    check_match(".norm.weight", NULL, 0);
    assert_null(sw_family_match(NULL, "head.weight", 11, NULL));
}

static void of_rows_of_one_name_the_one_whose_condition_holds_counts(void **state)
{
    sw_attributes a = {.layer_kinds = NULL};
    const sw_family_row *row = sw_family_match(&family, "twice.weight", 12, NULL);
    (void)state;
    assert_string_equal(row->shape, "8");
    assert_string_equal(sw_family_row_for(&family, row, &a, 0)->shape, "8"); /* cannot be told */
    a.is_set[SW_ATTR_TIED] = true;
    assert_string_equal(sw_family_row_for(&family, row, &a, 0)->shape, "9");
    a.value[SW_ATTR_TIED] = 1;
    assert_string_equal(sw_family_row_for(&family, row, &a, 0)->shape, "8");
}

/* ---- the real tables ---- */

static void check_expression(const char *name, const char *text)
{
    sw_attributes a = {.layer_kinds = NULL};
    sw_error err = {0};
    int64_t values[8];
    uint32_t n = 0;
    for (int i = 0; i < SW_ATTR_COUNT_; i++) {
        a.is_set[i] = true;
        a.value[i] = 64;
    }
    if (sw_expression_list(text, &a, 1, values, SW_COUNT(values), &n, &err) != SW_OK)
        fail_msg("%s: %s", name, err.what);
}

static void check_row(const char *name, const sw_family_row *row)
{
    bool is_expert = row->role == SW_ROLE_MOE_EXPERT || row->role == SW_ROLE_SHARED_EXPERT;
    bool has_parts = row->layout == SW_LAYOUT_STACKED || row->layout == SW_LAYOUT_INTERLEAVED;
    if (row->shape == NULL)
        fail_msg("%s: %s has no shape", name, row->name);
    check_expression(row->name, row->shape);
    if (row->when != NULL)
        check_expression(row->name, row->when);
    if (is_expert && row->side == SW_SIDE_DEFAULT)
        fail_msg("%s: %s does not say its side", name, row->name);
    if (has_parts && row->parts < 2)
        fail_msg("%s: %s does not say its parts", name, row->name);
    if (row->role == SW_ROLE_SKIP && (row->flags & SW_ROW_BUFFER) == 0)
        fail_msg("%s: %s has no role", name, row->name);
}

static void every_table_is_well_formed(void **state)
{
    (void)state;
    for (const sw_family *const *at = sw_families; *at != NULL; at++) {
        const sw_family *f = *at;
        for (const sw_family_block *block = f->blocks; *block != NULL; block++) {
            for (const sw_family_row *row = *block; row->name != NULL; row++)
                check_row(f->name, row);
        }
        for (const sw_default *d = f->defaults; d != NULL && d->attr != SW_ATTR_NONE; d++)
            check_expression(f->name, d->value);
        for (const sw_default *d = f->class_sizes; d != NULL && d->attr != SW_ATTR_NONE; d++)
            check_expression(f->name, d->value);
        for (const sw_layer_count *c = f->layer_counts; c != NULL && c->prefix != NULL; c++)
            check_expression(f->name, c->count);
    }
    for (const sw_default *d = sw_common_defaults; d->attr != SW_ATTR_NONE; d++)
        check_expression("common", d->value);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_suffixes_and_underscores_do_not_count),
        cmocka_unit_test(a_long_name_is_cut_short),
        cmocka_unit_test(the_architecture_decides_before_the_model_type),
        cmocka_unit_test(no_name_is_claimed_by_two_families),
        cmocka_unit_test(the_very_name_beats_every_suffix),
        cmocka_unit_test(an_added_prefix_is_recognised),
        cmocka_unit_test(a_missing_prefix_is_recognised),
        cmocka_unit_test(a_prefix_of_usual_wrappers_may_replace_another),
        cmocka_unit_test(less_than_whole_segments_or_two_of_them_do_not_match),
        cmocka_unit_test(of_rows_of_one_name_the_one_whose_condition_holds_counts),
        cmocka_unit_test(every_table_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
