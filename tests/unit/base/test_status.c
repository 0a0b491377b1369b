/* The error record: one line each, cut visibly, safe with hostile bytes and with arguments out of itself. */
#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_raise_writes_status_place_message_and_help(void **state)
{
    (void)state;
    sw_error err = {0};
    assert_int_equal(SW_FAIL(&err, SW_E_PLAN, "use tp=%s", "axis '%s' of %d", "tp", 3), SW_E_PLAN);
    assert_int_equal(err.status, SW_E_PLAN);
    assert_string_equal(err.file, "test_status.c");
    assert_true(err.line > 0);
    assert_string_equal(err.what, "axis 'tp' of 3");
    assert_string_equal(err.help, "use tp=%s"); /* help is text, not a format */
}

static void a_raise_without_a_record_still_returns_its_status(void **state)
{
    (void)state;
    assert_int_equal(SW_FAIL(NULL, SW_E_IO, "", "x"), SW_E_IO);
    sw_error_context(NULL, "nobody listens");
}

static void context_goes_in_front(void **state)
{
    (void)state;
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_PLAN, NULL, "inner"));
    sw_error_context(&err, "middle %d", 2);
    sw_error_context(&err, "outer");
    assert_string_equal(err.what, "outer: middle 2: inner");
    assert_string_equal(err.help, "");
}

static void a_raise_may_quote_the_record_it_replaces(void **state)
{
    (void)state;
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_PLAN, "old help", "inner"));
    SW_IGNORE(SW_FAIL(&err, SW_E_IO, err.help, "again: %s", err.what));
    assert_string_equal(err.what, "again: inner");
    assert_string_equal(err.help, "old help");
}

static void a_long_message_ends_in_dots_and_in_a_whole_character(void **state)
{
    (void)state;
    sw_error err = {0};
    char text[700] = "";
    for (size_t i = 0; i + 2 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa4", 3);
    }
    SW_IGNORE(SW_FAIL(&err, SW_E_PLAN, "", "a%s", text));
    size_t length = strlen(err.what);
    assert_true(length < sizeof err.what && length > sizeof err.what - 6);
    assert_string_equal(err.what + length - 5, "\xc3\xa4...");
    sw_error_context(&err, "outer");
    assert_memory_equal(err.what, "outer: a\xc3\xa4", 10);
    assert_string_equal(err.what + strlen(err.what) - 3, "...");
}

static void a_message_stays_one_line_without_control_characters(void **state)
{
    (void)state;
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_PLAN, "a\nb", "a\nb\x1b[31mc\x7f"));
    assert_string_equal(err.what, "a?b?[31mc?");
    assert_string_equal(err.help, "a?b");
}

static void bytes_that_are_not_utf8_become_question_marks(void **state)
{
    (void)state;
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_FORMAT, "\xc3\xa9\xff", "a\x9a\xc3\xa9\xc3"));
    assert_string_equal(err.what, "a?\xc3\xa9?");
    assert_string_equal(err.help, "\xc3\xa9?");
}

static void a_failure_without_help_has_that_of_its_status(void **state)
{
    (void)state;
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_FORMAT, "", "x"));
    assert_string_equal(err.help,
                        "the file is damaged or was written by another program: mend it here, or make "
                        "it again");
    SW_IGNORE(SW_FAIL(&err, SW_E_LIMIT, NULL, "x"));
    assert_string_equal(err.help, "check that this is the file you mean");
    SW_IGNORE(SW_FAIL(&err, SW_E_IO, "", "x"));
    assert_string_equal(err.help, "check the path, its permissions and the free space");
    SW_IGNORE(SW_FAIL(&err, SW_E_NO_MEMORY, "", "x"));
    assert_string_equal(err.help, "free memory, or raise the limit of it (ulimit -v)");
}

static void a_limit_of_the_process_is_named(void **state)
{
    (void)state;
    assert_string_equal(sw_errno_help(EACCES, "look there"), "look there");
    assert_string_equal(sw_errno_help(EMFILE, "look there"), "raise the limit of open files (ulimit -n)");
    assert_non_null(strstr(sw_errno_help(ENFILE, "look there"), "fs.file-max"));
    assert_non_null(strstr(sw_errno_help(EFBIG, "look there"), "ulimit -f"));
    assert_non_null(strstr(sw_errno_help(ENOMEM, "look there"), "ulimit -v"));
}

static void every_status_has_a_name_and_an_exit(void **state)
{
    (void)state;
    assert_string_equal(sw_status_name(SW_OK), "ok");
    assert_string_equal(sw_status_name(SW_E_PEER), "peer");
    assert_string_equal(sw_status_name(SW_E_UNPROVED), "unproved");
    assert_string_equal(sw_status_name((sw_status)99), "unknown");
    assert_int_equal(sw_status_exit(SW_OK), 0);
    assert_int_equal(sw_status_exit(SW_E_ARGUMENT), 2);
    assert_int_equal(sw_status_exit(SW_E_FORMAT), 1);
    assert_int_equal(sw_status_exit(SW_E_PLAN), 1);
    assert_int_equal(sw_status_exit(SW_E_LIMIT), 1);
    assert_int_equal(sw_status_exit(SW_E_NO_MEMORY), 3);
    assert_int_equal(sw_status_exit(SW_E_IO), 3);
    assert_int_equal(sw_status_exit(SW_E_PEER), 3);
    assert_int_equal(sw_status_exit(SW_E_UNPROVED), 4);
    assert_int_equal(sw_status_exit((sw_status)99), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_raise_writes_status_place_message_and_help),
        cmocka_unit_test(a_raise_without_a_record_still_returns_its_status),
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(a_raise_may_quote_the_record_it_replaces),
        cmocka_unit_test(a_long_message_ends_in_dots_and_in_a_whole_character),
        cmocka_unit_test(a_message_stays_one_line_without_control_characters),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
        cmocka_unit_test(a_failure_without_help_has_that_of_its_status),
        cmocka_unit_test(a_limit_of_the_process_is_named),
        cmocka_unit_test(every_status_has_a_name_and_an_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
