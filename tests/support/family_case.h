/*
 * What a family's table says about some decisive names, in words. A test of a family is a list of cases and a
 * call: {"model.norm.weight", "norm"}, {"lm_head.weight", "lm_head vocab"}.
 */
#ifndef SW_TEST_FAMILY_CASE_H
#define SW_TEST_FAMILY_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "family/attributes.h"

typedef struct family_case {
    const char *pattern; /* a row's very name */
    const char *words;   /* see family_case_words() */
} family_case;

/*
 * A row in words: its role, then what differs from the plainest row: layout (and its number of parts), side,
 * form, flags, in this order: "moe_expert stacked 2 out experts optional".
 */
static inline void family_case_words(const sw_family_row *row, sw_buffer *out)
{
    static const char *const layouts[SW_LAYOUT_COUNT_] = {
        "",           "heads",   "kv_heads",    "qkv_stacked", "qkv_per_head", "qkv_grouped", "qkv_blocks",
        "kv_stacked", "stacked", "interleaved", "vocab",       "unknown",      "explicit",
    };
    static const char *const sides[] = {"", "out", "in", "none"};
    static const char *const forms[] = {"", "conv1d", "experts", "experts_t", "expert_rows", "expert_rows_t"};
    static const char *const flags[] = {"buffer",      "frozen",    "mixer",   "full_norm",
                                        "position",    "optional",  "f32",     "quantised",
                                        "unquantised", "in_groups", "centred", "copy"};
    sw_buffer_puts(out, sw_role_name(row->role));
    if (row->layout != SW_LAYOUT_PLAIN)
        sw_buffer_printf(out, " %s", layouts[row->layout]);
    if (row->parts != 0)
        sw_buffer_printf(out, " %u", row->parts);
    if (row->side != SW_SIDE_DEFAULT)
        sw_buffer_printf(out, " %s", sides[row->side]);
    if (row->form != SW_FORM_LINEAR)
        sw_buffer_printf(out, " %s", forms[row->form]);
    for (size_t i = 0; i < SW_COUNT(flags); i++) {
        if ((row->flags >> i & 1U) != 0)
            sw_buffer_printf(out, " %s", flags[i]);
    }
}

/* The family is found by its class and by its model type, and says these words about these names. */
static inline void check_family(const char *architecture, const char *model_type, const char *name,
                                const family_case *cases, size_t n_cases)
{
    const sw_family *family = sw_family_find(architecture, NULL);
    assert_non_null(family);
    assert_string_equal(family->name, name);
    assert_ptr_equal(family, sw_family_find(NULL, model_type));
    for (size_t i = 0; i < n_cases; i++) {
        sw_buffer words = {0};
        int cut = 1;
        const sw_family_row *row = sw_family_match(family, cases[i].pattern, strlen(cases[i].pattern), &cut);
        if (row == NULL || cut != 0) {
            fail_msg("%s: no row is named %s", name, cases[i].pattern);
            return;
        }
        family_case_words(row, &words);
        if (strcmp(sw_buffer_text(&words), cases[i].words) != 0)
            fail_msg("%s: %s is \"%s\"", name, cases[i].pattern, sw_buffer_text(&words));
        sw_buffer_clear(&words);
    }
}

#endif
