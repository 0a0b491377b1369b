/* Roles line by line, with the rule that gave each; and the tables of rules as text. */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/roles_report.h"

#define LLAMA                                                                                                \
    "'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'num_hidden_layers': 2, 'hidden_size': "  \
    "16, "                                                                                                   \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'intermediate_size': 16, 'vocab_size': 16"
#define UNKNOWN "'architectures': ['HouseNetForCausalLM'], 'model_type': 'housenet'"
#define NAMES                                                                                                \
    "model.embed_tokens.weight F32 16x8\nmodel.layers.0.attn.q_proj.weight F32 8x8\n"                        \
    "model.layers.1.attn.q_proj.weight F32 8x8\nmodel.layers.0.scale F32 8\nrotary.inv_freq F32 4\n"

static sw_overrides *parse(const char *yaml)
{
    sw_overrides *overrides = NULL;
    sw_error err = {0};
    assert_int_equal(sw_overrides_create(&overrides, NULL), SW_OK);
    if (sw_overrides_add_text(overrides, yaml, strlen(yaml), "o.yaml", &err) != SW_OK)
        fail_msg("%s", err.what);
    return overrides;
}

static void expect_line(const sw_role_lines *lines, uint32_t i, const char *name, uint32_t n, sw_role role,
                        const char *rule)
{
    assert_in_range(i, 0, lines->n - 1);
    assert_string_equal(lines->lines[i].name, name);
    assert_int_equal(lines->lines[i].n_params, n);
    assert_string_equal(sw_role_name(lines->lines[i].role), sw_role_name(role));
    assert_string_equal(lines->lines[i].rule, rule);
}

static void names_of_one_pattern_are_one_line(void **state)
{
    (void)state;
    sw_model *model = tiny_open(UNKNOWN, NAMES);
    sw_role_lines lines;
    assert_int_equal(sw_role_lines_make(&lines, model, NULL, false, NULL), SW_OK);
    assert_int_equal(lines.n, 4);
    expect_line(&lines, 0, "model.embed_tokens.weight", 1, SW_ROLE_EMBED,
                "default rule 1: embed_tokens.weight");
    expect_line(&lines, 1, "model.layers.#.attn.q_proj.weight", 2, SW_ROLE_COLWISE,
                "default rule 10: q_proj");
    expect_line(&lines, 2, "model.layers.0.scale", 1, SW_ROLE_SKIP, "no rule");
    expect_line(&lines, 3, "rotary.inv_freq", 1, SW_ROLE_SKIP, "default: rotary and mask buffers");
    assert_string_equal(lines.lines[3].reason, "buffer");
    sw_role_lines_clear(&lines);
    assert_int_equal(sw_role_lines_make(&lines, model, NULL, true, NULL), SW_OK);
    assert_int_equal(lines.n, 5);
    sw_role_lines_clear(&lines);
    sw_model_close(model);
}

static void a_family_is_named_with_its_row(void **state)
{
    (void)state;
    sw_model *model = tiny_open(LLAMA, NULL);
    sw_role_lines lines;
    sw_buffer text = {0};
    assert_int_equal(sw_role_lines_make(&lines, model, NULL, false, NULL), SW_OK);
    expect_line(&lines, 0, "model.embed_tokens.weight", 1, SW_ROLE_EMBED,
                "family llama: model.embed_tokens.weight");
    assert_int_equal(sw_role_lines_put(&lines, &text, NULL), SW_OK);
    assert_non_null(
        strstr(sw_buffer_text(&text), "\nmodel.embed_tokens.weight                           1  embed"));
    assert_non_null(strstr(sw_buffer_text(&text), "  family llama\n")); /* the row's name is not said twice */
    sw_buffer_clear(&text);
    sw_role_lines_clear(&lines);
    sw_model_close(model);
}

/* As docs/man/shardwright-roles.1 has it. */
static void the_row_is_said_where_it_is_not_the_name_of_the_line(void **state)
{
    static const char *const expected[] = {
        "model.layers.#.self_attn.q_proj.weight            2  colwise     family llama\n",
        "model.layers.#.self_attn.q_proj.weight_scale      2  colwise     family llama: "
        "model.layers.#.self_attn.q_proj.weight\n",
        "model.layers.0.self_attn.k_proj.weight            1  colwise     family llama: "
        "model.layers.#.self_attn.k_proj.weight\n",
        "model.vision_tower.odd.weight                     1  replicated  default: towers\n",
        "score.weight                                      1  replicated  default: task heads\n",
    };
    sw_model *model = tiny_open(LLAMA, "model.layers.0.self_attn.q_proj.weight F8_E4M3 32x32\n"
                                       "model.layers.1.self_attn.q_proj.weight F8_E4M3 32x32\n"
                                       "model.layers.0.self_attn.q_proj.weight_scale F32 1\n"
                                       "model.layers.1.self_attn.q_proj.weight_scale F32 1\n"
                                       "model.layers.0.self_attn.k_proj.weight F32 32x32\n"
                                       "model.vision_tower.odd.weight F32 8x8\n"
                                       "score.weight F32 2x32\n");
    sw_role_lines lines;
    sw_buffer text = {0};
    (void)state;
    assert_int_equal(sw_role_lines_make(&lines, model, NULL, false, NULL), SW_OK);
    assert_int_equal(sw_role_lines_put(&lines, &text, NULL), SW_OK);
    for (size_t i = 0; i < SW_COUNT(expected); i++) {
        if (strstr(sw_buffer_text(&text), expected[i]) == NULL)
            fail_msg("no line %sin\n%s", expected[i], sw_buffer_text(&text));
    }
    sw_buffer_clear(&text);
    sw_role_lines_clear(&lines);
    sw_model_close(model);
}

static void rules_of_an_override_file_are_named(void **state)
{
    (void)state;
    sw_model *model = tiny_open(UNKNOWN, NAMES);
    sw_overrides *overrides = parse("roles:\n  extend: true\n  rules:\n"
                                    "    - {pattern: layers.1.attn, role: replicated}\n");
    sw_role_lines lines;
    assert_int_equal(sw_role_lines_make(&lines, model, overrides, false, NULL), SW_OK);
    assert_int_equal(lines.n, 5); /* the pattern has two roles now: two lines */
    expect_line(&lines, 1, "model.layers.#.attn.q_proj.weight", 1, SW_ROLE_COLWISE,
                "default rule 10: q_proj");
    expect_line(&lines, 3, "model.layers.#.attn.q_proj.weight", 1, SW_ROLE_REPLICATED,
                "roles, rule 1: layers.1.attn");
    sw_role_lines_clear(&lines);
    sw_overrides_destroy(overrides);
    sw_model_close(model);
}

static void the_rules_are_printed_from_the_tables(void **state)
{
    (void)state;
    sw_buffer text = {0};
    assert_int_equal(sw_rules_put(&text, NULL), SW_OK);
    const char *all = sw_buffer_text(&text);
    assert_non_null(strstr(all, "\n   9  norm           segment_substring  norm layernorm rmsnorm ln_\n"));
    for (int type = SW_BOUNDARY_ATTENTION; type < SW_BOUNDARY_CUSTOM; type++) {
        char title[64];
        (void)snprintf(title, sizeof title,
                       "\n\n%s\n  parameters over tp: ", sw_boundary_type_name((sw_boundary_type)type));
        assert_non_null(strstr(all, title));
    }
    sw_buffer_clear(&text);
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    sw_model *model = tiny_open(UNKNOWN, NAMES);
    for (uint64_t n = 1;; n++) {
        sw_role_lines lines = {0};
        sw_buffer text = {0};
        int64_t live = sw_alloc_live();
        sw_alloc_fail_at(n);
        sw_status status = sw_role_lines_make(&lines, model, NULL, false, NULL);
        if (status == SW_OK)
            status = sw_role_lines_put(&lines, &text, NULL);
        if (status == SW_OK)
            status = sw_rules_put(&text, NULL);
        sw_alloc_fail_at(0);
        bool is_done = status == SW_OK && !text.failed;
        sw_buffer_clear(&text);
        sw_role_lines_clear(&lines);
        assert_int_equal(sw_alloc_live(), live);
        if (is_done)
            break;
        assert_true(status == SW_E_NO_MEMORY || status == SW_OK);
        assert_in_range(n, 1, 1000);
    }
    sw_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_one_pattern_are_one_line),
        cmocka_unit_test(a_family_is_named_with_its_row),
        cmocka_unit_test(the_row_is_said_where_it_is_not_the_name_of_the_line),
        cmocka_unit_test(rules_of_an_override_file_are_named),
        cmocka_unit_test(the_rules_are_printed_from_the_tables),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
