/* Patterns on names: a table of cases, and no blow-up on hostile patterns. */
#include "base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct glob_case {
    const char *pattern;
    const char *text;
    bool matches;
} glob_case;

// clang-format off
static const glob_case cases[] = {
    { "",                    "",                            true  },
    { "",                    "a",                           false },
    { "a",                   "",                            false },
    { "lm_head",             "lm_head",                     true  },
    { "lm_head",             "lm_head.weight",              false },
    { "*",                   "",                            true  },
    { "*",                   "model.layers.0",              true  },
    { "**",                  "x",                           true  },
    { "*.mlp.*",             "model.layers.3.mlp.up_proj",  true  },
    { "*.mlp",               "model.layers.3.mlp.up_proj",  false },
    { "model.*.mlp",         "model.layers.3.mlp",          true  },
    { "layers.?.mlp",        "layers.3.mlp",                true  },
    { "layers.?.mlp",        "layers.13.mlp",               false },
    { "*a*b",                "aXbXaXb",                     true  },
    { "*a*b",                "aXbXaXbX",                    false },
    { "*ab",                 "aab",                         true  },
    { "layers.[0-3].mlp",    "layers.2.mlp",                true  },
    { "layers.[0-3].mlp",    "layers.4.mlp",                false },
    { "layers.[!0-3].mlp",   "layers.4.mlp",                true  },
    { "layers.[!0-3].mlp",   "layers.0.mlp",                false },
    { "w[qkv]",              "wk",                          true  },
    { "w[qkv]",              "wo",                          false },
    { "*w[qkv]",             "wwq",                         true  },
    { "a[]]b",               "a]b",                         true  },
    { "a[!]]b",              "a]b",                         false },
    { "a[!]]b",              "axb",                         true  },
    { "a[b-]",               "a-",                          true  },
    { "a[-b]",               "a-",                          true  },
    { "a[b",                 "a[b",                         true  },
    { "a[b",                 "ab",                          false },
    { "a[!",                 "a[!",                         true  },
    { "a[",                  "a[",                          true  },
    { "a\\*",              "a\\b",                      true  },
    { "?",                   "",                            false },
};
// clang-format on

static void each_pattern_of_the_table_does_what_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (sw_glob_match(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("'%s' on '%s' should be %d", cases[i].pattern, cases[i].text, cases[i].matches);
        }
    }
}

static void only_special_characters_make_a_pattern(void **state)
{
    (void)state;
    assert_false(sw_glob_is_pattern("model.layers.0"));
    assert_true(sw_glob_is_pattern("model.*"));
    assert_true(sw_glob_is_pattern("a?"));
    assert_true(sw_glob_is_pattern("[a"));
}

static void many_stars_on_a_long_text_take_no_time(void **state)
{
    (void)state;
    static char text[20001];
    memset(text, 'a', sizeof text - 1);
    assert_false(sw_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
    assert_true(sw_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a", text));
}

static void text_may_go_on_behind_its_length(void **state)
{
    (void)state;
    uint64_t steps = 0;
    sw_glob glob = sw_glob_of("*.mlp");
    assert_true(sw_glob_match_in(&glob, "layers.0.mlp.up_proj", 12, &steps));
    assert_false(sw_glob_match_in(&glob, "layers.0.mlp.up_proj", 20, &steps));
    glob = sw_glob_of("layers.0");
    assert_true(sw_glob_match_in(&glob, "layers.0.mlp", 8, &steps));
    assert_false(sw_glob_match_in(&glob, "layers.0.mlp", 7, &steps));
    assert_false(sw_glob_match_in(&glob, "layers.0.mlp", 9, &steps));
}

static void steps_say_what_was_compared(void **state)
{
    (void)state;
    static char text[1001];
    uint64_t steps = 0;
    sw_glob glob = sw_glob_of("model.*.mlp");
    assert_false(sw_glob_match_in(&glob, "model.layers.0.norm", 19, &steps));
    assert_false(sw_glob_match_in(&glob, "m.layers.0.mlp", 14, &steps));
    assert_int_equal(steps, 2); /* the ends told them apart */
    memset(text, 'a', sizeof text - 1);
    glob = sw_glob_of("*b*");
    assert_false(sw_glob_match_in(&glob, text, sizeof text - 1, &steps));
    assert_in_range(steps, 1000, 3000);
    steps = 0;
    glob = sw_glob_of("*[0123456789]*");
    assert_false(sw_glob_match_in(&glob, text, sizeof text - 1, &steps));
    assert_in_range(steps, 1000, 3000);
    steps = 0;
    glob = sw_glob_of("[aaaaaaaaa]*");
    assert_true(sw_glob_match_in(&glob, text, 1, &steps));
    assert_in_range(steps, 10, 20); /* a set costs its length */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pattern_of_the_table_does_what_it_says),
        cmocka_unit_test(only_special_characters_make_a_pattern),
        cmocka_unit_test(many_stars_on_a_long_text_take_no_time),
        cmocka_unit_test(text_may_go_on_behind_its_length),
        cmocka_unit_test(steps_say_what_was_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
