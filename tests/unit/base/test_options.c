/* Structs of choices: what the library and an older or newer program both know is taken, and no byte more. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"

/* As the library has it now; the first version ended with `first`. */
typedef struct choices {
    size_t struct_size;
    uint64_t first;
    uint64_t second;
} choices;

static const sw_options_type type = {"choices", "start from CHOICES_INIT", SW_END_OF(choices, first),
                                     sizeof(choices)};

/* Read a struct of `size` bytes, all of which are its own and no more. */
static choices read_of_size(size_t size)
{
    choices known = {sizeof known, 10, 20};
    choices given = {size, 1, 2};
    unsigned char *room = calloc(1, size);

    assert_non_null(room);
    memcpy(room, &given, size < sizeof given ? size : sizeof given);
    assert_int_equal(sw_options_read(&known, room, &type, NULL), SW_OK);
    free(room);
    return known;
}

static void a_struct_as_it_is_now_is_taken_whole(void **state)
{
    choices read = read_of_size(sizeof read);

    (void)state;
    assert_int_equal(read.first, 1);
    assert_int_equal(read.second, 2);
}

static void fields_that_an_older_program_lacks_keep_their_defaults(void **state)
{
    choices read = read_of_size(SW_END_OF(choices, first));

    (void)state;
    assert_int_equal(read.first, 1);
    assert_int_equal(read.second, 20);
}

static void fields_that_only_a_newer_program_has_are_passed_over(void **state)
{
    choices read = read_of_size(4096);

    (void)state;
    assert_int_equal(read.first, 1);
    assert_int_equal(read.second, 2);
}

static void no_struct_means_the_defaults(void **state)
{
    choices known = {sizeof known, 10, 20};

    (void)state;
    assert_int_equal(sw_options_read(&known, NULL, &type, NULL), SW_OK);
    assert_int_equal(known.first, 10);
    assert_int_equal(known.second, 20);
}

static void a_size_that_no_version_had_is_refused_and_only_the_size_read(void **state)
{
    static const struct {
        size_t size;
        const char *what;
    } cases[] = {
  // clang-format off
        {0,        "choices: struct_size is 0"},
        {15,       "choices: struct_size is 15"}, /* the first version had 16 */
        {4097,     "choices: struct_size is 4097"},
        {SIZE_MAX, "choices: struct_size is 18446744073709551615"},
  // clang-format on
    };
    size_t *only_a_size = malloc(sizeof *only_a_size);

    (void)state;
    assert_non_null(only_a_size);
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        choices known = {sizeof known, 10, 20};
        sw_error err = {0};
        *only_a_size = cases[i].size;
        assert_int_equal(sw_options_read(&known, only_a_size, &type, &err), SW_E_ARGUMENT);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.help, "start from CHOICES_INIT");
        assert_int_equal(known.first, 10);
        assert_int_equal(known.second, 20);
    }
    free(only_a_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_struct_as_it_is_now_is_taken_whole),
        cmocka_unit_test(fields_that_an_older_program_lacks_keep_their_defaults),
        cmocka_unit_test(fields_that_only_a_newer_program_has_are_passed_over),
        cmocka_unit_test(no_struct_means_the_defaults),
        cmocka_unit_test(a_size_that_no_version_had_is_refused_and_only_the_size_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
