/*
 * Expressions over attributes: values, what does not matter is not asked for, and faults by name.
 */
#include "family/attributes.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/status.h"

static const uint8_t kinds[] = {SW_LAYER_FULL, SW_LAYER_WINDOW, SW_LAYER_LINEAR};
static const uint8_t dense[] = {1, 0};

static sw_attributes some(void)
{
    sw_attributes a = {.layer_kinds = kinds, .n_layer_kinds = 3, .dense_layers = dense, .n_dense_layers = 2};
    a.is_set[SW_ATTR_HIDDEN] = a.is_set[SW_ATTR_HEADS] = a.is_set[SW_ATTR_TIED] = true;
    a.value[SW_ATTR_HIDDEN] = 4096;
    a.value[SW_ATTR_HEADS] = 32;
    return a;
}

static void values_follow_the_usual_precedence(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"7",                                  7    },
        {"1 + 2 * 3",                          7    },
        {"(1 + 2) * 3",                        9    },
        {"10 - 4 - 3",                         3    },
        {"7 / 2 * 2",                          6    },
        {"-7 / 2",                             -3   },
        {"17 % 5",                             2    },
        {"hidden / heads",                     128  },
        {"3*heads*(hidden/heads)",             12288},
        {"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3", 1    },
        {"1 == 2 || 1 != 2",                   1    },
        {"1 + 1 == 2",                         1    },
        {"1 || 0 && 0",                        1    },
        {"!tied",                              1    },
        {"!!5",                                1    },
        {"- -3",                               3    },
        {"min(5, 3) + min(1,2)",               4    },
        {"ceil_div(576, 128)",                 5    },
        {"ceil_div(512, 128)",                 4    },
        {"  hidden  ",                         4096 },
    };
    sw_attributes a = some();
    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        int64_t value = -1;
        sw_error err = {0};
        if (sw_expression(cases[i].text, &a, 0, &value, &err) != SW_OK)
            fail_msg("%s: %s", cases[i].text, err.what);
        if (value != cases[i].value)
            fail_msg("%s gives %lld", cases[i].text, (long long)value);
    }
}

static void words_of_a_layer_follow_its_number(void **state)
{
    sw_attributes a = some();
    int64_t value = -1;
    (void)state;
    assert_int_equal(sw_expression("layer * 10 + layer_kind", &a, 2, &value, NULL), SW_OK);
    assert_int_equal(value, 22);
    assert_int_equal(sw_expression("layer_kind", &a, 99, &value, NULL), SW_OK);
    assert_int_equal(value, SW_LAYER_FULL);
    assert_int_equal(sw_expression("layer_dense", &a, 0, &value, NULL), SW_OK);
    assert_int_equal(value, 1);
    assert_int_equal(sw_expression("layer_dense", &a, 2, &value, NULL), SW_OK);
    assert_int_equal(value, 0);
}

static void the_side_that_does_not_matter_may_be_unset(void **state)
{
    sw_attributes a = some();
    int64_t value = -1;
    (void)state;
    assert_int_equal(sw_expression("tied && experts > 0", &a, 0, &value, NULL), SW_OK);
    assert_int_equal(value, 0);
    assert_int_equal(sw_expression("!tied || 1 / experts", &a, 0, &value, NULL), SW_OK);
    assert_int_equal(value, 1);
    assert_int_equal(sw_expression("!tied && experts > 0", &a, 0, &value, NULL), SW_E_FORMAT);
}

static void check_fault(const char *text, sw_status status, const char *what)
{
    sw_attributes a = some();
    int64_t value = -1;
    sw_error err = {0};
    assert_int_equal(sw_expression(text, &a, 0, &value, &err), status);
    if (strstr(err.what, what) == NULL)
        fail_msg("\"%s\" says: %s", text, err.what);
    assert_int_equal(value, -1);
}

static void faults_are_named_with_their_place(void **state)
{
    (void)state;
    check_fault("experts * 2", SW_E_FORMAT, "attribute experts has no value");
    check_fault("hidden * sise", SW_E_FORMAT, "an attribute expected at byte 9");
    check_fault("hidden *", SW_E_FORMAT, "a value expected at byte 8");
    check_fault("", SW_E_FORMAT, "a value expected at byte 0");
    check_fault("(1 + 2", SW_E_FORMAT, "')' expected at byte 6");
    check_fault("1 2", SW_E_FORMAT, "an operator expected at byte 2");
    check_fault("1 = 2", SW_E_FORMAT, "an operator expected at byte 2");
    check_fault("min(1)", SW_E_FORMAT, "',' expected at byte 5");
    check_fault("hidden / tied", SW_E_FORMAT, "division by zero");
    check_fault("ceil_div(1, 0)", SW_E_FORMAT, "division by zero");
    check_fault("9223372036854775807 + 1", SW_E_LIMIT, "does not fit 64 bits");
    check_fault("9223372036854775808", SW_E_LIMIT, "does not fit 64 bits");
    check_fault("4294967296 * 4294967296", SW_E_LIMIT, "does not fit 64 bits");
    check_fault("(0 - 9223372036854775807 - 1) / -1", SW_E_LIMIT, "does not fit 64 bits");
}

static void the_help_for_an_unset_attribute_names_a_key(void **state)
{
    sw_attributes a = some();
    int64_t value = 0;
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_expression("intermediate", &a, 0, &value, &err), SW_E_FORMAT);
    assert_string_equal(err.help, "add intermediate_size to the config");
}

static void deep_nesting_is_refused(void **state)
{
    char text[256];
    (void)state;
    memset(text, '(', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    check_fault(text, SW_E_LIMIT, "nested too deeply");
    memset(text, '!', sizeof text - 1);
    check_fault(text, SW_E_LIMIT, "nested too deeply");
}

static void many_calls_side_by_side_are_not_nesting(void **state)
{
    char text[512] = "0";
    sw_attributes a = some();
    int64_t value = 0;
    (void)state;
    for (int i = 0; i < 40; i++)
        (void)strncat(text, " + (1)", sizeof text - strlen(text) - 1);
    assert_int_equal(sw_expression(text, &a, 0, &value, NULL), SW_OK);
    assert_int_equal(value, 40);
}

static void a_shape_is_a_list_of_expressions(void **state)
{
    sw_attributes a = some();
    int64_t extents[3] = {0};
    uint32_t n = 9;
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_expression_list("min(heads, 4), 1,hidden", &a, 0, extents, 3, &n, &err), SW_OK);
    assert_int_equal(n, 3);
    assert_int_equal(extents[0], 4);
    assert_int_equal(extents[2], 4096);
    assert_int_equal(sw_expression_list("", &a, 0, extents, 3, &n, &err), SW_OK);
    assert_int_equal(n, 0);
    assert_int_equal(sw_expression_list("1, 2, 3, 4", &a, 0, extents, 3, &n, &err), SW_E_LIMIT);
    assert_non_null(strstr(err.what, "more than 3 values"));
    assert_int_equal(sw_expression_list("1,", &a, 0, extents, 3, &n, &err), SW_E_FORMAT);
    assert_int_equal(sw_expression_list("1 2", &a, 0, extents, 3, &n, &err), SW_E_FORMAT);
}

static void every_attribute_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = SW_ATTR_NONE + 1; i < SW_ATTR_COUNT_; i++) {
        const char *name = sw_attr_name((sw_attr)i);
        if (name == NULL) {
            fail_msg("attribute %d has no name", i);
            return;
        }
        assert_int_equal(sw_attr_of(name, strlen(name)), i);
    }
    assert_null(sw_attr_name(SW_ATTR_COUNT_));
    assert_int_equal(sw_attr_of("hidde", 5), SW_ATTR_NONE);
    assert_int_equal(sw_attr_of("hiddens", 7), SW_ATTR_NONE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_the_usual_precedence),
        cmocka_unit_test(words_of_a_layer_follow_its_number),
        cmocka_unit_test(the_side_that_does_not_matter_may_be_unset),
        cmocka_unit_test(faults_are_named_with_their_place),
        cmocka_unit_test(the_help_for_an_unset_attribute_names_a_key),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(many_calls_side_by_side_are_not_nesting),
        cmocka_unit_test(a_shape_is_a_list_of_expressions),
        cmocka_unit_test(every_attribute_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
