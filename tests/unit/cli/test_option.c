/* The option table: what is taken, every refusal with its words, and the text of --help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "cli/option.h"

enum { OPT_MESH, OPT_OUTPUT, OPT_ALL, OPT_JSON, OPT_EP };

// clang-format off
static const sw_option options[] = {
    [OPT_MESH]   = { "mesh",   'm', "AXES", "axis sizes" },
    [OPT_OUTPUT] = { "output", 'o', "FILE", "write there" },
    [OPT_ALL]    = { "all",    'a', NULL,   "show everything" },
    [OPT_JSON]   = { "json",   0,   NULL,   "write JSON" },
    [OPT_EP]     = { "ep",     0,   "N",    "expert ranks" },
    { 0 },
};
// clang-format on

enum { MAX_WORDS = 12 };

/* A line taken apart at blanks; '' is an empty word. */
typedef struct line {
    char text[256];
    char *argv[MAX_WORDS + 1];
    int argc;
} line;

static void split(line *l, const char *text)
{
    char *rest = l->text;
    *l = (line){0};
    (void)snprintf(l->text, sizeof l->text, "command %s", text);
    while (rest != NULL && *rest != '\0' && l->argc < MAX_WORDS) {
        char *word = strsep(&rest, " ");
        if (strcmp(word, "''") == 0)
            *word = '\0';
        l->argv[l->argc++] = word;
    }
}

static sw_arguments parsed(line *l, const char *text)
{
    sw_error err = {0};
    sw_arguments arguments = {0};
    split(l, text);
    if (sw_arguments_parse(&arguments, options, l->argc, l->argv, &err) != SW_OK)
        fail_msg("%s: %s", text, err.what);
    return arguments;
}

static void expect_refusal(const char *text, const char *what, const char *help)
{
    line l;
    sw_error err = {0};
    sw_arguments arguments = {0};
    split(&l, text);
    assert_int_equal(sw_arguments_parse(&arguments, options, l.argc, l.argv, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, what);
    assert_string_equal(err.help, help);
    assert_null(arguments.options); /* untouched */
}

static void options_may_stand_anywhere_in_every_spelling(void **state)
{
    (void)state;
    const char *const texts[] = {"--mesh tp=4 --all MODEL", "MODEL --mesh=tp=4 -a", "-mtp=4 -a MODEL",
                                 "MODEL -am tp=4"};
    for (size_t i = 0; i < SW_COUNT(texts); i++) {
        line l;
        sw_arguments arguments = parsed(&l, texts[i]);
        assert_string_equal(arguments.values[OPT_MESH], "tp=4");
        assert_true(sw_arguments_has(&arguments, OPT_ALL));
        assert_false(sw_arguments_has(&arguments, OPT_JSON));
        assert_false(arguments.wants_help);
        assert_int_equal(arguments.n_operands, 1);
        assert_string_equal(arguments.operands[0], "MODEL");
    }
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    line l;
    sw_arguments arguments = parsed(&l, "--all -- --json -x");
    assert_false(sw_arguments_has(&arguments, OPT_JSON));
    assert_int_equal(arguments.n_operands, 2);
    assert_string_equal(arguments.operands[1], "-x");
}

static void help_needs_nothing_else(void **state)
{
    (void)state;
    line l;
    assert_true(parsed(&l, "--help").wants_help);
    assert_true(parsed(&l, "MODEL -h").wants_help);
    assert_int_equal(parsed(&l, "").n_operands, 0);
}

static void an_unknown_option_names_the_nearest(void **state)
{
    (void)state;
    expect_refusal("--mseh tp=4", "unknown option '--mseh'",
                   "did you mean '--mesh'? --help lists the options");
    expect_refusal("--outptu=x", "unknown option '--outptu'",
                   "did you mean '--output'? --help lists the options");
    expect_refusal("--hepl", "unknown option '--hepl'", "did you mean '--help'? --help lists the options");
    expect_refusal("--something-else", "unknown option '--something-else'", "--help lists the options");
    expect_refusal("-x", "unknown option '-x'", "--help lists the options");
    expect_refusal("-ax", "unknown option '-x'", "--help lists the options");
}

static void an_abbreviation_is_not_an_option(void **state)
{
    (void)state;
    expect_refusal("--out x", "unknown option '--out'", "did you mean '--output'? --help lists the options");
    expect_refusal("--out=x", "unknown option '--out'", "did you mean '--output'? --help lists the options");
    expect_refusal("--al", "unknown option '--al'", "did you mean '--all'? --help lists the options");
}

static void a_value_is_given_where_one_is_needed_and_nowhere_else(void **state)
{
    (void)state;
    expect_refusal("--mesh", "option --mesh needs AXES", "axis sizes");
    expect_refusal("-a -m", "option --mesh needs AXES", "axis sizes");
    expect_refusal("--mesh=", "option --mesh has an empty value, it needs AXES", "axis sizes");
    expect_refusal("--mesh ''", "option --mesh has an empty value, it needs AXES", "axis sizes");
    expect_refusal("--json=yes", "option --json takes no value", "write it alone");
    expect_refusal("--all=1", "option --all takes no value", "write it alone");
}

static void a_value_is_given_once(void **state)
{
    (void)state;
    line l;
    expect_refusal("--mesh tp=4 -m tp=4", "option --mesh is given twice", "give it once");
    sw_arguments arguments = parsed(&l, "-a -a --all"); /* a switch may be */
    assert_true(sw_arguments_has(&arguments, OPT_ALL));
}

static void a_missing_option_is_named(void **state)
{
    (void)state;
    line l;
    sw_error err = {0};
    const char *value = NULL;
    sw_arguments arguments = parsed(&l, "--output x");
    assert_int_equal(sw_arguments_require(&arguments, OPT_MESH, &value, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "option --mesh AXES is missing");
    assert_string_equal(err.help, "axis sizes");
    assert_int_equal(sw_arguments_require(&arguments, OPT_OUTPUT, &value, &err), SW_OK);
    assert_string_equal(value, "x");
}

static void options_that_exclude_each_other_are_both_named(void **state)
{
    (void)state;
    line l;
    sw_error err = {0};
    sw_arguments arguments = parsed(&l, "--all --json");
    assert_int_equal(sw_arguments_exclude(&arguments, OPT_ALL, OPT_JSON, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "options --all and --json exclude each other");
    assert_int_equal(sw_arguments_exclude(&arguments, OPT_ALL, OPT_MESH, &err), SW_OK);
}

static void a_number_is_checked_against_its_range(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *what; /* NULL: taken */
        uint32_t value;
    } cases[] = {
        {"--ep 1",                       NULL,                                                   1         },
        {"--ep 4294967295",              NULL,                                                   UINT32_MAX},
        {"--ep 0",                       "option --ep: 0 is out of range",                       0         },
        {"--ep 4294967296",              "option --ep: 4294967296 is out of range",              0         },
        {"--ep 99999999999999999999999", "option --ep: 99999999999999999999999 is out of range", 0         },
        {"--ep -1",                      "option --ep: '-1' is not a whole number",              0         },
        {"--ep 1x",                      "option --ep: '1x' is not a whole number",              0         },
        {"--ep=+1",                      "option --ep: '+1' is not a whole number",              0         },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        line l;
        sw_error err = {0};
        uint32_t value = 77;
        sw_arguments arguments = parsed(&l, cases[i].text);
        sw_status status = sw_arguments_u32(&arguments, OPT_EP, 1, UINT32_MAX, &value, &err);
        if (cases[i].what == NULL) {
            assert_int_equal(status, SW_OK);
            assert_int_equal(value, cases[i].value);
        } else {
            assert_int_equal(status, SW_E_ARGUMENT);
            assert_string_equal(err.what, cases[i].what);
            assert_string_equal(err.help, "give a number from 1 to 4294967295");
            assert_int_equal(value, 77);
        }
    }
}

static void an_absent_number_keeps_its_default(void **state)
{
    (void)state;
    line l;
    uint32_t value = 77;
    sw_arguments arguments = parsed(&l, "--all");
    assert_int_equal(sw_arguments_u32(&arguments, OPT_EP, 1, 8, &value, NULL), SW_OK);
    assert_int_equal(value, 77);
}

static void whole_numbers_have_64_bits(void **state)
{
    static const struct {
        const char *text;
        bool is_one;
        uint64_t value;
    } cases[] = {
        {"--ep 0",                    true,  0         },
        {"--ep 18446744073709551615", true,  UINT64_MAX},
        {"--ep 18446744073709551616", false, 7         },
        {"--ep -1",                   false, 7         },
        {"--ep 1.5",                  false, 7         },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        line l;
        sw_error err = {0};
        uint64_t value = 7;
        sw_arguments arguments = parsed(&l, cases[i].text);
        sw_status status = sw_arguments_u64(&arguments, OPT_EP, &value, &err);
        assert_int_equal(status, cases[i].is_one ? SW_OK : SW_E_ARGUMENT);
        assert_true(value == cases[i].value);
        assert_true(cases[i].is_one || strstr(err.what, "is no such number") != NULL);
    }
}

static void decimal_numbers_have_a_range(void **state)
{
    static const struct {
        const char *text;
        const char *what; /* NULL: fine */
        double value;
    } cases[] = {
        {"--ep 0.5",  NULL,                                 0.5 },
        {"--ep 1e-3", NULL,                                 1e-3},
        {"--ep 1",    NULL,                                 1   },
        {"--ep 1.1",  "option --ep: 1.1 is out of range",   7   },
        {"--ep -1",   "option --ep: -1 is out of range",    7   },
        {"--ep 1x",   "option --ep: '1x' is not a number",  7   },
        {"--ep nan",  "option --ep: 'nan' is not a number", 7   },
        {"--ep 0x1",  "option --ep: '0x1' is not a number", 7   },
        {"--ep 1e",   "option --ep: '1e' is not a number",  7   },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        line l;
        sw_error err = {0};
        double value = 7;
        sw_arguments arguments = parsed(&l, cases[i].text);
        sw_status status = sw_arguments_number(&arguments, OPT_EP, 0, 1, &value, &err);
        assert_int_equal(status, cases[i].what == NULL ? SW_OK : SW_E_ARGUMENT);
        assert_true(value == cases[i].value);
        if (cases[i].what != NULL) {
            assert_string_equal(err.what, cases[i].what);
            assert_string_equal(err.help, "give a number from 0 to 1");
        }
    }
}

static void the_table_is_the_help_text(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_options_describe(options, &out);
    assert_string_equal(sw_buffer_text(&out), "  -m, --mesh AXES    axis sizes\n"
                                              "  -o, --output FILE  write there\n"
                                              "  -a, --all          show everything\n"
                                              "      --json         write JSON\n"
                                              "      --ep N         expert ranks\n"
                                              "  -h, --help         show this help\n");
    sw_buffer_clear(&out);
}

static void sizes_have_units_of_both_kinds(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"--ep 1",                    1            },
        {"--ep 4096B",                4096         },
        {"--ep 20KB",                 20000        },
        {"--ep 500MB",                500000000    },
        {"--ep 5GB",                  5000000000   },
        {"--ep 2TB",                  2000000000000},
        {"--ep 3KiB",                 3072         },
        {"--ep 1MiB",                 1048576      },
        {"--ep 2GiB",                 2147483648   },
        {"--ep 1TiB",                 1099511627776},
        {"--ep 18446744073709551615", UINT64_MAX   },
        {"--all",                     7            },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        line l;
        uint64_t bytes = 7;
        sw_arguments arguments = parsed(&l, cases[i].text);
        assert_int_equal(sw_arguments_bytes(&arguments, OPT_EP, &bytes, NULL), SW_OK);
        assert_true(bytes == cases[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *what;
    } cases[] = {
        {"--ep GB",                   "option --ep: 'GB' is not a size"                  },
        {"--ep 5gb",                  "option --ep: '5gb' is not a size"                 },
        {"--ep -5GB",                 "option --ep: '-5GB' is not a size"                },
        {"--ep 1.5GB",                "option --ep: '1.5GB' is not a size"               },
        {"--ep 5GBs",                 "option --ep: '5GBs' is not a size"                },
        {"--ep 0",                    "option --ep: 0 is out of range"                   },
        {"--ep 0GB",                  "option --ep: 0GB is out of range"                 },
        {"--ep 18446744073709551616", "option --ep: 18446744073709551616 is out of range"},
        {"--ep 99999999999999999999", "option --ep: 99999999999999999999 is out of range"},
        {"--ep 18446744073709552KB",  "option --ep: 18446744073709552KB is out of range" },
        {"--ep 16777216TiB",          "option --ep: 16777216TiB is out of range"         },
    };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        line l;
        uint64_t bytes = 7;
        sw_error err = {0};
        sw_arguments arguments = parsed(&l, cases[i].text);
        assert_int_equal(sw_arguments_bytes(&arguments, OPT_EP, &bytes, &err), SW_E_ARGUMENT);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.help, "give a size such as 5GB, 500MB or 2GiB");
        assert_true(bytes == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_units_of_both_kinds),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(options_may_stand_anywhere_in_every_spelling),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(help_needs_nothing_else),
        cmocka_unit_test(an_unknown_option_names_the_nearest),
        cmocka_unit_test(an_abbreviation_is_not_an_option),
        cmocka_unit_test(a_value_is_given_where_one_is_needed_and_nowhere_else),
        cmocka_unit_test(a_value_is_given_once),
        cmocka_unit_test(a_missing_option_is_named),
        cmocka_unit_test(options_that_exclude_each_other_are_both_named),
        cmocka_unit_test(a_number_is_checked_against_its_range),
        cmocka_unit_test(an_absent_number_keeps_its_default),
        cmocka_unit_test(whole_numbers_have_64_bits),
        cmocka_unit_test(decimal_numbers_have_a_range),
        cmocka_unit_test(the_table_is_the_help_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
