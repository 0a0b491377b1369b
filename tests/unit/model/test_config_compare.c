/* Configs of one model: what may differ between them, and what is named when more does. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "model/config_compare.h"

static sw_status compare(const char *ours, const char *theirs, sw_error *err)
{
    return sw_config_compare(sw_file_map_of(ours, strlen(ours)), "run/config.json",
                             sw_file_map_of(theirs, strlen(theirs)), "model/config.json", err);
}

static void configs_of_one_model_are_the_same(void **state)
{
    static const char *const pairs[][2] = {
        {"{\"a\": 1, \"b\": [1, {\"c\": null}]}",       "{\"b\": [1, {\"c\": null}], \"a\": 1.0}"  },
        {"{\"dtype\": \"float32\", \"a\": 1}",          "{\"torch_dtype\": \"bfloat16\", \"a\": 1}"},
        {"{\"t\": {\"dtype\": \"float32\", \"a\": 2}}",
         "{\"t\": {\"a\": 2}, \"transformers_version\": \"4.1\"}"                                  },
        {"{\"a\": null}",                               "{\"_name_or_path\": \"x\"}"               },
        {"{}",                                          "{\"quantization_config\": {\"bits\": 8}}" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        sw_error err = {0};
        if (compare(pairs[i][0], pairs[i][1], &err) != SW_OK ||
            compare(pairs[i][1], pairs[i][0], &err) != SW_OK)
            fail_msg("%s", err.what);
    }
}

static void the_first_key_that_differs_is_named_with_both_values(void **state)
{
    static const struct {
        const char *ours;
        const char *theirs;
        const char *what;
    } cases[] = {
        {"{\"a\": 1, \"eps\": 1e-5}",        "{\"a\": 1, \"eps\": 0.25}",
         "run/config.json: key \"eps\" is 1e-05, in model/config.json it is 0.25"      },
        {"{\"t\": {\"x\": 2, \"y\": true}}", "{\"t\": {\"x\": 2, \"y\": 1}}",
         "run/config.json: key \"t.y\" is true, in model/config.json it is 1"          },
        {"{\"a\": [1, 2]}",                  "{\"a\": [1, 3]}",
         "run/config.json: key \"a\" is [1, 2], in model/config.json it is [1, 3]"     },
        {"{\"a\": 1}",                       "{\"a\": 1, \"b\": {\"c\": 2}}",
         "run/config.json: key \"b\" is not set, in model/config.json it is {\"c\": 2}"},
        {"{\"b\": \"x\"}",                   "{\"b\": null}",
         "run/config.json: key \"b\" is \"x\", in model/config.json it is not set"     },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sw_error err = {0};
        assert_int_equal(compare(cases[i].ours, cases[i].theirs, &err), SW_E_FORMAT);
        assert_string_equal(err.what, cases[i].what);
    }
}

static void what_is_no_config_is_refused_by_its_path(void **state)
{
    sw_error err = {0};

    (void)state;
    assert_int_equal(compare("{", "{}", &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "run/config.json"));
    assert_int_equal(compare("{}", "[]", &err), SW_E_FORMAT);
    assert_non_null(strstr(err.what, "model/config.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs_of_one_model_are_the_same),
        cmocka_unit_test(the_first_key_that_differs_is_named_with_both_values),
        cmocka_unit_test(what_is_no_config_is_refused_by_its_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
