/* Patterns of names, their counts, and the order of names. */
#include "model/pattern.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

static void check_pattern(const char *name, const char *pattern, int32_t first, int32_t second)
{
    char out[256];
    int32_t counts[2] = {7, 7};
    memset(out, '!', sizeof out);
    uint32_t length = sw_make_pattern(name, out, counts);
    assert_true(length <= strlen(name)); /* the room that the caller has to give */
    assert_int_equal(out[strlen(name)], '!');
    out[length] = '\0';
    assert_string_equal(out, pattern);
    assert_int_equal(counts[0], first);
    assert_int_equal(counts[1], second);
}

static void counts_are_whole_segments_of_digits(void **state)
{
    (void)state;
    check_pattern("model.layers.12.mlp.experts.255.w1.weight", "model.layers.#.mlp.experts.#.w1.weight", 12,
                  255);
    check_pattern("h.0.attn.bias", "h.#.attn.bias", 0, -1);
    check_pattern("lm_head.weight", "lm_head.weight", -1, -1);
    check_pattern("h.0", "h.#", 0, -1);
    check_pattern("0.weight", "#.weight", 0, -1);
    check_pattern("7", "#", 7, -1);
    check_pattern("a.1.b.2.c.3", "a.#.b.#.c.#", 1, 2);
    check_pattern("block12.w1.x2y", "block12.w1.x2y", -1, -1);
    check_pattern("-1.+2.1e3.weight", "-1.+2.1e3.weight", -1, -1);
}

static void odd_names_are_kept_as_they_are(void **state)
{
    (void)state;
    check_pattern("", "", -1, -1);
    check_pattern(".", ".", -1, -1);
    check_pattern("..0..", "..#..", 0, -1);
    check_pattern("a..b", "a..b", -1, -1);
    check_pattern("a.", "a.", -1, -1);
}

static void numbers_of_more_than_six_digits_are_names(void **state)
{
    (void)state;
    check_pattern("h.999999.w", "h.#.w", 999999, -1);
    check_pattern("h.1000000.w", "h.1000000.w", -1, -1);
    check_pattern("h.99999999999999999999999999.w", "h.99999999999999999999999999.w", -1, -1);
    check_pattern("h.1234567.4", "h.1234567.#", 4, -1);
}

static void numbers_with_leading_zeros_are_names(void **state)
{
    (void)state;
    check_pattern("h.00.w.0", "h.00.w.#", 0, -1);
    check_pattern("h.01.w", "h.01.w", -1, -1);
}

static void a_number_sign_of_a_name_is_no_count(void **state)
{
    (void)state;
    check_pattern("h.#.w#.3", "h.\x01.w\x01.#", 3, -1);
}

static void the_text_before_a_count_ends_with_it(void **state)
{
    (void)state;
    static const char pattern[] = "model.layers.#.mlp.experts.#.w1.#";
    assert_int_equal(sw_pattern_before_count(pattern, sizeof pattern - 1, 1), strlen("model.layers.#"));
    assert_int_equal(sw_pattern_before_count(pattern, sizeof pattern - 1, 2),
                     strlen("model.layers.#.mlp.experts.#"));
    assert_int_equal(sw_pattern_before_count(pattern, sizeof pattern - 1, 3), sizeof pattern - 1);
    assert_int_equal(sw_pattern_before_count(pattern, sizeof pattern - 1, 4), 0);
    assert_int_equal(sw_pattern_before_count(pattern, 13, 1), 0); /* only what is inside counts */
    assert_int_equal(sw_pattern_before_count("#", 1, 1), 1);
    assert_int_equal(sw_pattern_before_count("", 0, 1), 0);
}

static void names_are_ordered_as_people_count(void **state)
{
    (void)state;
    static const char *const in_order[] = {
        "",     "a",     "a.2", "a.2.b", "a.9",  "a.10", "a.10.b", "a.10.c",   "a.100",          "a1b2",
        "a1b9", "a1b10", "a2",  "a10",   "b.01", "b.02", "b.010",  "w.weight", "w.weight_scale",
    };
    size_t n = sizeof in_order / sizeof *in_order;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            int order = sw_compare_names(in_order[i], in_order[k]);
            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("'%s' and '%s' compare as %d", in_order[i], in_order[k], order);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_whole_segments_of_digits),
        cmocka_unit_test(odd_names_are_kept_as_they_are),
        cmocka_unit_test(numbers_of_more_than_six_digits_are_names),
        cmocka_unit_test(numbers_with_leading_zeros_are_names),
        cmocka_unit_test(a_number_sign_of_a_name_is_no_count),
        cmocka_unit_test(the_text_before_a_count_ends_with_it),
        cmocka_unit_test(names_are_ordered_as_people_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
