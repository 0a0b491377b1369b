/* Text for people: numbers, runs, wrapped lines and tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "plan/explain_text.h"

static void expect(sw_buffer *out, const char *text)
{
    assert_string_equal(sw_buffer_text(out), text);
    sw_buffer_clear(out);
}

static void numbers_have_separators(void **state)
{
    (void)state;
    char text[SW_TEXT_NUMBER];
    assert_string_equal(sw_text_count(text, 0), "0");
    assert_string_equal(sw_text_count(text, 999), "999");
    assert_string_equal(sw_text_count(text, 1000), "1,000");
    assert_string_equal(sw_text_count(text, 1235814400), "1,235,814,400");
    assert_string_equal(sw_text_count(text, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(sw_text_amount(text, 1234.5), "1,235");
    assert_string_equal(sw_text_amount(text, 1e30), "18,446,744,073,709,551,615");
}

static void bytes_have_a_unit_that_fits(void **state)
{
    (void)state;
    char text[SW_TEXT_NUMBER];
    assert_string_equal(sw_text_bytes(text, 0), "0 B");
    assert_string_equal(sw_text_bytes(text, 1023), "1023 B");
    assert_string_equal(sw_text_bytes(text, 1024), "1.0 KiB");
    assert_string_equal(sw_text_bytes(text, 1024.0 * 1024 - 1), "1.0 MiB");
    assert_string_equal(sw_text_bytes(text, 1536.0 * 1024 * 1024), "1.5 GiB");
    assert_string_equal(sw_text_bytes(text, 1e30), "867361737988.4 EiB");
}

static void runs_of(const uint64_t *numbers, size_t n, const char *text)
{
    sw_text_runs runs = {0};
    sw_buffer out = {0};
    for (size_t i = 0; i < n; i++)
        sw_text_runs_add(&runs, numbers[i], &out);
    sw_text_runs_end(&runs, &out);
    expect(&out, text);
}

static void neighbouring_numbers_are_a_run(void **state)
{
    (void)state;
    runs_of((const uint64_t[]){7}, 1, "7");
    runs_of((const uint64_t[]){0, 1, 2}, 3, "0..2");
    runs_of((const uint64_t[]){0, 2, 3, 4, 9}, 5, "0,2..4,9");
    runs_of((const uint64_t[]){3, 2, 1}, 3, "3,2,1");
    runs_of(NULL, 0, "");
}

static void long_lists_are_broken_at_blanks(void **state)
{
    (void)state;
    sw_buffer out = {0};
    char text[160];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    text[50] = ' ';
    text[105] = ' ';
    sw_text_wrap(&out, 2, text);
    for (const char *at = sw_buffer_text(&out); *at != '\0'; at += strcspn(at, "\n") + 1) {
        assert_memory_equal(at, "  a", 3);
        assert_in_range(strcspn(at, "\n"), 3, SW_TEXT_LINE_WIDTH);
    }
    sw_buffer_clear(&out);
    text[50] = 'a';
    text[105] = 'a'; /* one word: it stays whole */
    sw_text_wrap(&out, 2, text);
    assert_int_equal(out.length, 2 + strlen(text) + 1);
    sw_buffer_clear(&out);
}

static void columns_are_aligned_and_nothing_trails(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_buffer below = {0};
    sw_text_table table = {.arena = sw_arena_create(0), .n_columns = 3, .right = 1U << 1};
    const char *const cells[] = {"name", "n", "kind", "a\x1b", "100", "", "long-name", "7", "x"};
    for (size_t i = 0; i < 9; i++) {
        sw_text_cell(&table, "%s", cells[i]);
        if (i == 5) {
            sw_buffer_puts(&below, "    below a\n");
            sw_text_below(&table, &below);
        }
    }
    assert_int_equal(sw_text_table_width(&table, 2), 2 + 9 + 2 + 3 + 2 + 4);
    sw_text_table_put(&table, 2, 3, &out);
    expect(&out, "  name         n  kind\n"
                 "  a?         100\n"
                 "    below a\n"
                 "  long-name    7  x\n");
    sw_text_table_put(&table, 0, 1, &out);
    expect(&out, "name\na?\n    below a\nlong-name\n");
    sw_buffer_clear(&below);
    sw_arena_destroy(table.arena);
}

static void a_table_without_memory_fails_its_buffer(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_text_table table = {.arena = sw_arena_create(0), .n_columns = 1};
    sw_alloc_fail_at(1);
    sw_text_cell(&table, "lost");
    sw_alloc_fail_at(0);
    assert_true(table.failed);
    sw_text_table_put(&table, 0, 1, &out);
    assert_true(out.failed);
    sw_buffer_clear(&out);
    sw_arena_destroy(table.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_separators),
        cmocka_unit_test(bytes_have_a_unit_that_fits),
        cmocka_unit_test(neighbouring_numbers_are_a_run),
        cmocka_unit_test(long_lists_are_broken_at_blanks),
        cmocka_unit_test(columns_are_aligned_and_nothing_trails),
        cmocka_unit_test(a_table_without_memory_fails_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
