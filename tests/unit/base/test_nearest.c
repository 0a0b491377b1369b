/* Suggestions: near words are found, far ones are not, and the banded distance equals the plain one. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const axes[] = {"pp", "dp", "cp", "tp", "dp_shard", "dp_replicate"};

static const char *nearest_axis(const char *word)
{
    return sw_nearest(word, axes, sizeof axes / sizeof axes[0]);
}

static void one_slip_in_a_short_word_is_forgiven(void **state)
{
    (void)state;
    assert_string_equal(nearest_axis("tq"), "tp");
    assert_string_equal(nearest_axis("tpp"), "pp"); /* the first of equals */
    assert_string_equal(nearest_axis("pd"), "pp");
    assert_null(nearest_axis("xy"));
}

static void longer_words_may_be_up_to_three_edits_away(void **state)
{
    (void)state;
    assert_string_equal(nearest_axis("dp_shrad"), "dp_shard");
    assert_string_equal(nearest_axis("dpreplicat"), "dp_replicate");
    assert_string_equal(nearest_axis("dp-repilcate"), "dp_replicate");
    assert_null(nearest_axis("dq-repilxatf"));
}

static void nothing_and_too_much_have_no_neighbour(void **state)
{
    (void)state;
    char text[400];
    const char *const words[] = {text};
    memset(text, 'a', sizeof text);
    text[399] = '\0';
    assert_null(sw_nearest("tp", axes, 0));
    assert_null(sw_nearest(text, words, 1));
    assert_null(sw_nearest("", axes, 2));
    text[1] = '\0';
    assert_string_equal(sw_nearest("", words, 1), "a");
}

/* The textbook table, unbounded. */
static size_t plain_distance(const char *a, const char *b)
{
    size_t table[16][16];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            size_t best = i == 0 ? j : j == 0 ? i : SIZE_MAX;
            if (i > 0 && j > 0) {
                best = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                best = table[i - 1][j] + 1 < best ? table[i - 1][j] + 1 : best;
                best = table[i][j - 1] + 1 < best ? table[i][j - 1] + 1 : best;
                if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                    best = table[i - 2][j - 2] + 1 < best ? table[i - 2][j - 2] + 1 : best;
                }
            }
            table[i][j] = best;
        }
    }
    return table[a_length][b_length];
}

static void random_word(uint64_t *seed, char *word)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    size_t length = *seed >> 33 & 15;
    for (size_t i = 0; i < length; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + 1;
        word[i] = (char)('a' + (*seed >> 40) % 3);
    }
    word[length] = '\0';
}

static void the_band_finds_what_the_whole_table_finds(void **state)
{
    (void)state;
    uint64_t seed = 1;
    size_t n_near = 0;
    for (int i = 0; i < 20000; i++) {
        char a[16];
        char b[16];
        const char *const words[] = {b};
        random_word(&seed, a);
        random_word(&seed, b);
        size_t third = (strlen(a) > strlen(b) ? strlen(a) : strlen(b)) / 3;
        size_t allowed = third < 1 ? 1 : third > 3 ? 3 : third;
        bool is_near = plain_distance(a, b) <= allowed;
        assert_int_equal(sw_nearest(a, words, 1) != NULL, is_near);
        n_near += is_near;
    }
    assert_true(n_near > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slip_in_a_short_word_is_forgiven),
        cmocka_unit_test(longer_words_may_be_up_to_three_edits_away),
        cmocka_unit_test(nothing_and_too_much_have_no_neighbour),
        cmocka_unit_test(the_band_finds_what_the_whole_table_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
