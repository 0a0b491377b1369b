/* Placements as text: both grammars, the refusals with their words, the one text of each placement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "mesh/placement.h"

static const char plan_grammar[] =
    "write R, P, S(dim), S(dim;rep=N), S(dim;unit=M), S(dim;seg=A+BrN+CuM) or S(dim;gN=A+BrN)";
static const char word_grammar[] =
    "write replicate, partial or shard(N) with N = 0, 1, ..., or a placement as "
    "plan files have it: R, P, S(0), S(0;seg=64+16r2+16r2)";

static int open_arena(void **state)
{
    *state = sw_arena_create(1 << 20);
    return *state == NULL;
}

static int close_arena(void **state)
{
    sw_arena_destroy(*state);
    return 0;
}

static sw_placement parsed(sw_arena *arena, const char *text)
{
    sw_error err = {0};
    sw_placement placement = {0};
    if (sw_placement_parse(&placement, text, strlen(text), arena, &err) != SW_OK)
        fail_msg("%s: %s", text, err.what);
    return placement;
}

static void printing_what_was_parsed_gives_the_same_text(void **state)
{
    const char *const texts[] = {
        "R",
        "P",
        "S(0)",
        "S(-1)",
        "S(12)",
        "S(-2147483647)",
        "S(0;rep=4)",
        "S(0;rep=4;unit=64)",
        "S(1;unit=64)",
        "S(0;seg=48)",
        "S(0;seg=4096+256r2+256r2)",
        "S(0;seg=5760u64)",
        "S(-1;seg=8r2u4+18446744073709551615r4294967295u18446744073709551615)",
        "S(0;g2=16+4r2+4r2)",
        "S(0;g4294967295=1)",
    };
    for (size_t i = 0; i < SW_COUNT(texts); i++) {
        char text[128] = "";
        sw_placement placement = parsed(*state, texts[i]);
        assert_int_equal(sw_placement_text(&placement, text, sizeof text), strlen(texts[i]));
        assert_string_equal(text, texts[i]);
        assert_true(sw_placement_equal(&placement, &placement));
        for (size_t j = 0; j < SW_COUNT(texts); j++) {
            sw_placement other = parsed(*state, texts[j]);
            assert_int_equal(sw_placement_equal(&placement, &other), i == j);
        }
    }
}

static void a_text_becomes_the_fields_it_says(void **state)
{
    sw_placement p = parsed(*state, "S(-2;g2=16+4r2u8)");
    assert_int_equal(p.kind, SW_PLACE_SHARD);
    assert_int_equal(p.dim, -2);
    assert_int_equal(p.cut->n_groups, 2);
    assert_int_equal(p.cut->n_segments, 2);
    assert_int_equal(p.cut->segments[0].extent, 16);
    assert_int_equal(p.cut->segments[0].replicas, 1);
    assert_int_equal(p.cut->segments[0].unit, 1);
    assert_int_equal(p.cut->segments[1].extent, 4);
    assert_int_equal(p.cut->segments[1].replicas, 2);
    assert_int_equal(p.cut->segments[1].unit, 8);

    p = parsed(*state, "S(0;rep=4)");
    assert_int_equal(p.cut->n_groups, 1);
    assert_int_equal(p.cut->n_segments, 1);
    assert_int_equal(p.cut->segments[0].extent, 0); /* the whole dim */
    assert_int_equal(p.cut->segments[0].replicas, 4);
    assert_null(parsed(*state, "S(3)").cut);
}

static void defaults_and_their_numbers_are_equal_and_print_alike(void **state)
{
    (void)state;
    char text[32] = "";
    const sw_segment zero = {0, 0, 0};
    const sw_segment one = {0, 1, 1};
    const sw_cut zero_cut = {0, 1, &zero};
    const sw_cut one_cut = {1, 1, &one};
    sw_placement plain = {SW_PLACE_SHARD, 0, NULL};
    sw_placement a = {SW_PLACE_SHARD, 0, &zero_cut};
    sw_placement b = {SW_PLACE_SHARD, 0, &one_cut};
    assert_true(sw_placement_equal(&a, &b));
    assert_true(sw_placement_equal(&a, &plain));
    assert_true(sw_placement_equal(&plain, &b));
    (void)sw_placement_text(&a, text, sizeof text);
    assert_string_equal(text, "S(0)");
    (void)sw_placement_text(&b, text, sizeof text);
    assert_string_equal(text, "S(0)");
}

static void kinds_and_dims_tell_placements_apart(void **state)
{
    (void)state;
    sw_placement r = {SW_PLACE_REPLICATE, 0, NULL};
    sw_placement r5 = {SW_PLACE_REPLICATE, 5, NULL}; /* the dim of a replicate says nothing */
    sw_placement p = {SW_PLACE_PARTIAL, 0, NULL};
    sw_placement first = {SW_PLACE_SHARD, 1, NULL};
    sw_placement last = {SW_PLACE_SHARD, -1, NULL};
    assert_true(sw_placement_equal(&r, &r5));
    assert_false(sw_placement_equal(&r, &p));
    assert_false(sw_placement_equal(&first, &last)); /* also on a tensor of two dims */
}

static void a_text_without_room_is_cut_and_says_its_length(void **state)
{
    char text[8] = "xxxxxxx";
    sw_placement placement = parsed(*state, "S(0;seg=4096+256r2)");
    assert_int_equal(sw_placement_text(&placement, text, 5), 19);
    assert_string_equal(text, "S(0;");
    assert_int_equal(text[5], 'x');
    assert_int_equal(sw_placement_text(&placement, NULL, 0), 19);
    assert_int_equal(sw_placement_text(&(sw_placement){.kind = (sw_placement_kind)9}, text, 8), 1);
    assert_string_equal(text, "?");
}

static void a_wrong_text_is_refused_where_it_goes_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *what;
    } cases[] = {
        {"",                              "placement '': expected R, P or S( at character 1"                         },
        {"r",                             "placement 'r': expected R, P or S( at character 1"                        },
        {"R ",                            "placement 'R ': expected nothing more at character 2"                     },
        {"PP",                            "placement 'PP': expected nothing more at character 2"                     },
        {"S",                             "placement 'S': expected R, P or S( at character 1"                        },
        {"S()",                           "placement 'S()': expected a number at character 3"                        },
        {"S(-)",                          "placement 'S(-)': expected a number at character 4"                       },
        {"S(-0)",                         "placement 'S(-0)': expected a number of at least 1 at character 4"        },
        {"S(01)",                         "placement 'S(01)': expected a number without leading zeros at character 3"},
        {"S(2147483648)",                 "placement 'S(2147483648)': expected a smaller number at character 3"      },
        {"S(0",                           "placement 'S(0': expected ')' at character 4"                             },
        {"S(0))",                         "placement 'S(0))': expected nothing more at character 5"                  },
        {"S(0;)",                         "placement 'S(0;)': expected seg=, g, rep= or unit= at character 5"        },
        {"S(0;seg=)",                     "placement 'S(0;seg=)': expected a number at character 9"                  },
        {"S(0;seg=0)",                    "placement 'S(0;seg=0)': expected a number of at least 1 at character 9"   },
        {"S(0;seg=1+)",                   "placement 'S(0;seg=1+)': expected a number at character 11"               },
        {"S(0;seg=1r1)",                  "placement 'S(0;seg=1r1)': expected a number of at least 2 at character 11"},
        {"S(0;seg=1u0)",                  "placement 'S(0;seg=1u0)': expected a number of at least 2 at character 11"},
        {"S(0;seg=1u2r2)",                "placement 'S(0;seg=1u2r2)': expected ')' at character 12"                 },
        {"S(0;seg=1r4294967296)",
         "placement 'S(0;seg=1r4294967296)': expected a smaller number at character 11"                              },
        {"S(0;seg=18446744073709551616)",
         "placement 'S(0;seg=18446744073709551616)': expected a smaller number at character 9"                       },
        {"S(0;seg=1)+1",                  "placement 'S(0;seg=1)+1': expected '+' at character 10"                   },
        {"S(0;g=1)",                      "placement 'S(0;g=1)': expected a number at character 6"                   },
        {"S(0;g1=1)",                     "placement 'S(0;g1=1)': expected a number of at least 2 at character 6"    },
        {"S(0;g2)",                       "placement 'S(0;g2)': expected '=' at character 7"                         },
        {"S(0;rep=1)",                    "placement 'S(0;rep=1)': expected a number of at least 2 at character 9"   },
        {"S(0;unit=2;rep=2)",             "placement 'S(0;unit=2;rep=2)': expected ')' at character 11"              },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_error err = {0};
        sw_placement out = {SW_PLACE_PARTIAL, 7, NULL};
        size_t length = strlen(cases[i].text);
        assert_int_equal(sw_placement_parse(&out, cases[i].text, length, *state, &err), SW_E_FORMAT);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.help, plan_grammar);
        assert_int_equal(out.dim, 7); /* untouched */
    }
}

static void a_text_may_not_be_longer_than_the_limit(void **state)
{
    sw_error err = {0};
    sw_placement out = {0};
    size_t length = SW_PLACEMENT_TEXT_LIMIT + 1;
    char *text = sw_alloc_zero(length, 1);
    assert_non_null(text);
    assert_int_equal(sw_placement_parse(&out, text, length, *state, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "a placement of 65537 bytes, the limit is 65536");
    assert_int_equal(sw_placement_parse_word(&out, text, length, *state, &err), SW_E_LIMIT);
    sw_free(text);
}

static void a_word_may_have_any_case_and_white_space(void **state)
{
    static const struct {
        const char *word;
        const char *text;
    } cases[] = {
        {"replicate",                  "R"                    },
        {" Rep li\tCATE\n",            "R"                    },
        {"Partial",                    "P"                    },
        {"shard(0)",                   "S(0)"                 },
        {"Shard( 1 2 )",               "S(12)"                },
        {"R",                          "R"                    },
        {"p",                          "P"                    },
        {"s(-1)",                      "S(-1)"                },
        {"S(0; seg=64 + 16R2 + 16r2)", "S(0;seg=64+16r2+16r2)"},
        {"S(0;REP=4)",                 "S(0;rep=4)"           },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_error err = {0};
        sw_placement out = {0};
        char text[64] = "";
        size_t length = strlen(cases[i].word);
        if (sw_placement_parse_word(&out, cases[i].word, length, *state, &err) != SW_OK)
            fail_msg("%s: %s", cases[i].word, err.what);
        (void)sw_placement_text(&out, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void any_other_word_is_refused_with_the_grammar(void **state)
{
    const char *const wrong[] = {
        "",          "shard",      "shard()",      "shard(-1)",        "shard(a)",      "shard(0",
        "shard(0)x", "replicated", "partial(avg)", "strided_shard(0)", "shard(1;rep=2)"};
    for (size_t i = 0; i < SW_COUNT(wrong); i++) {
        sw_error err = {0};
        sw_placement out = {0};
        char what[64];
        (void)snprintf(what, sizeof what, "'%s' is not a placement", wrong[i]);
        assert_int_equal(sw_placement_parse_word(&out, wrong[i], strlen(wrong[i]), *state, &err),
                         SW_E_FORMAT);
        assert_string_equal(err.what, what);
        assert_string_equal(err.help, word_grammar);
    }
    sw_placement out = {0};
    assert_int_equal(sw_placement_parse_word(&out, "partial\0x", 9, *state, NULL), SW_E_FORMAT);
}

static void a_negative_dim_counts_from_the_last(void **state)
{
    (void)state;
    uint32_t dim = 9;
    assert_true(sw_placement_dim(&(sw_placement){SW_PLACE_SHARD, -1, NULL}, 3, &dim));
    assert_int_equal(dim, 2);
    assert_true(sw_placement_dim(&(sw_placement){SW_PLACE_SHARD, 1, NULL}, 2, &dim));
    assert_int_equal(dim, 1);
    assert_false(sw_placement_dim(&(sw_placement){SW_PLACE_SHARD, 2, NULL}, 2, &dim));
    assert_false(sw_placement_dim(&(sw_placement){SW_PLACE_SHARD, -3, NULL}, 2, &dim));
    assert_false(sw_placement_dim(&(sw_placement){SW_PLACE_REPLICATE, 0, NULL}, 2, &dim));
}

static void a_parse_without_memory_is_a_status(void **state)
{
    (void)state;
    sw_error err = {0};
    sw_placement out = {0};
    sw_arena *tiny = sw_arena_create(1);
    assert_non_null(tiny);
    assert_int_equal(sw_placement_parse(&out, "S(0;rep=4)", 10, tiny, &err), SW_E_NO_MEMORY);
    assert_string_equal(err.what, "no memory for a placement of 1 segments");
    assert_int_equal(sw_placement_parse_word(&out, "S(0;rep=4)", 10, tiny, &err), SW_E_NO_MEMORY);
    sw_arena_destroy(tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing_what_was_parsed_gives_the_same_text),
        cmocka_unit_test(a_text_becomes_the_fields_it_says),
        cmocka_unit_test(defaults_and_their_numbers_are_equal_and_print_alike),
        cmocka_unit_test(kinds_and_dims_tell_placements_apart),
        cmocka_unit_test(a_text_without_room_is_cut_and_says_its_length),
        cmocka_unit_test(a_wrong_text_is_refused_where_it_goes_wrong),
        cmocka_unit_test(a_text_may_not_be_longer_than_the_limit),
        cmocka_unit_test(a_word_may_have_any_case_and_white_space),
        cmocka_unit_test(any_other_word_is_refused_with_the_grammar),
        cmocka_unit_test(a_negative_dim_counts_from_the_last),
        cmocka_unit_test(a_parse_without_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
