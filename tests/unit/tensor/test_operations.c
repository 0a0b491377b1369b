/* The table of operations: its texts, the page that shows it, and signatures. */
#include "page.h"

#include <string.h>

#include "tensor/operation.h"

static void every_row_stands_on_the_page(void **state)
{
    page_table page;

    (void)state;
    page_open(&page, "operations.md", "Operations");
    for (size_t i = 0; i < SW_OP_COUNT_; i++) {
        const sw_operation *op = &sw_operations[i];
        const char *cells[] = {op->name, op->values, op->linear, op->saved, NULL};
        page_check_row(&page, i, cells);
    }
    assert_int_equal(page.n_rows, SW_OP_COUNT_);
    page_close(&page);
}

/* Words of a column are names of values: inputs, or also outputs. */
static void expect_names(const sw_operation *op, const sw_signature *s, const char *words, bool also_outputs)
{
    for (const char *at = words; *at != '\0'; at += strspn(at, " +")) {
        size_t length = strcspn(at, " +");
        int value = sw_signature_find(s, at, length);
        if (value < 0 || (!also_outputs && (uint32_t)value >= s->n_inputs))
            fail_msg("%s: no value is called %.*s", op->name, (int)length, at);
        at += length;
    }
}

static void every_word_of_a_row_is_the_name_of_a_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_OP_COUNT_; i++) {
        const sw_operation *op = &sw_operations[i];
        sw_signature s;
        assert_true(sw_signature_parse(&s, op->values));
        expect_names(op, &s, op->linear, false);
        expect_names(op, &s, op->adds, false);
        expect_names(op, &s, op->saved, true);
    }
}

static void a_signature_is_read(void **state)
{
    sw_signature s;

    (void)state;
    assert_true(sw_signature_parse(&s, "x:*hd weight~?:h'D ids#!: -> y:*h"));
    assert_int_equal(s.n_inputs, 3);
    assert_int_equal(s.n_outputs, 1);
    assert_true(s.values[0].has_rest && !s.values[0].is_weight);
    assert_true(s.values[1].is_weight && s.values[1].is_optional && !s.values[1].has_rest);
    assert_true(s.values[2].is_whole_number && s.values[2].is_constant);
    assert_int_equal(s.values[2].n_letters, 0);
    assert_int_equal(s.n_letters, 4); /* h d h' D */
    assert_int_equal(sw_signature_base(&s, s.values[1].letters[0]), s.values[0].letters[0]);
    assert_int_equal(sw_signature_base(&s, s.values[1].letters[1]), s.values[1].letters[1]);
    assert_int_equal(sw_signature_find(&s, "weight", 6), 1);
    assert_int_equal(sw_signature_find(&s, "weigh", 5), -1);
}

static void signatures_that_say_nothing_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "x:*",
        "-> y:*",
        "x -> y:*",
        "x*: -> y:*",
        ":a -> y:a",
        "x:a1 -> y:a",
        "x:abcdef -> y:a",
        "x:abcde y:fghij z:klmno -> y:a",
        "a:a b:a c:a d:a e:a f:a g:a h:a i:a -> y:a",
        "x:a -> a:a b:a c:a d:a",
    };
    sw_signature s;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (sw_signature_parse(&s, bad[i]))
            fail_msg("'%s' was read", bad[i]);
    }
}

static void an_output_of_too_many_dims_is_refused(void **state)
{
    const uint64_t dims[5] = {1, 1, 1, 1, 1};
    uint64_t out[SW_TENSOR_MAX_DIMS];
    uint32_t n_dims = 0;
    sw_signature s;
    sw_extents extents = {0};
    sw_error err = {0};

    (void)state;
    assert_true(sw_signature_parse(&s, "x:* -> y:*K"));
    assert_int_equal(sw_extents_add(&extents, &s, 0, 5, dims, &err), SW_OK);
    assert_int_equal(sw_extents_output(&extents, &s, 0, 7, &n_dims, out, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "y would have 6 dims, a tensor has at most 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_stands_on_the_page),
        cmocka_unit_test(every_word_of_a_row_is_the_name_of_a_value),
        cmocka_unit_test(a_signature_is_read),
        cmocka_unit_test(signatures_that_say_nothing_are_refused),
        cmocka_unit_test(an_output_of_too_many_dims_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
