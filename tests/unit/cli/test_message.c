/* Messages: findings and failures as text and as JSON, said once, on lines that stay lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "cli/message.h"
#include "plan/report.h"

static sw_report *make_report(void)
{
    sw_report *report = NULL;
    sw_error err = {0};
    if (sw_report_create(&report, &err) != SW_OK)
        fail_msg("%s", err.what);
    return report;
}

typedef void message_fn(sw_buffer *out, const sw_error *err, const sw_report *report);

static void expect(message_fn *message, const sw_error *err, const sw_report *report, const char *text)
{
    sw_buffer out = {0};
    message(&out, err, report);
    assert_string_equal(sw_buffer_text(&out), text);
    sw_buffer_clear(&out);
}

static sw_error failure(const char *what, const char *help)
{
    sw_error err = {0};
    SW_IGNORE(SW_FAIL(&err, SW_E_PLAN, help, "%s", what));
    return err;
}

static void success_without_findings_says_nothing(void **state)
{
    (void)state;
    sw_error ok = {0};
    sw_report *report = make_report();
    expect(sw_message_text, &ok, NULL, "");
    expect(sw_message_json, &ok, NULL, "");
    expect(sw_message_json, &ok, report, "");
    sw_report_destroy(report);
}

static void a_failure_is_two_lines(void **state)
{
    (void)state;
    sw_error err = failure("unknown axis 'tq'", "did you mean 'tp'?");
    expect(sw_message_text, &err, NULL, "shardwright: unknown axis 'tq'\nhelp: did you mean 'tp'?\n");
    err = failure("no memory", "");
    expect(sw_message_text, &err, NULL, "shardwright: no memory\n");
}

static void a_failure_is_one_json_object(void **state)
{
    (void)state;
    sw_error err = failure("unknown axis '\"tq\\'", "did you mean 'tp'?");
    expect(sw_message_json, &err, NULL,
           "{\"error\":{\"status\":\"plan\",\"what\":\"unknown axis '\\\"tq\\\\'\",\"help\":\"did you mean "
           "'tp'?\"},"
           "\"findings\":[]}\n");
}

static void warnings_are_said_also_of_a_success(void **state)
{
    (void)state;
    sw_error ok = {0};
    sw_report *report = make_report();
    sw_report_add(report, SW_SEVERITY_NOTE, "typed", "a.b", "", "typed as mlp");
    sw_report_add(report, SW_SEVERITY_WARNING, "uneven_vocab", "lm_head.weight", "pad to 16",
                  "%d rows over %d", 13, 4);
    expect(sw_message_text, &ok, report,
           "shardwright: warning: lm_head.weight: 13 rows over 4 [uneven_vocab]\nhelp: pad to 16\n");
    expect(
        sw_message_json, &ok, report,
        "{\"error\":null,\"findings\":["
        "{\"severity\":\"note\",\"code\":\"typed\",\"fqn\":\"a.b\",\"what\":\"typed as mlp\",\"help\":\"\"},"
        "{\"severity\":\"warning\",\"code\":\"uneven_vocab\",\"fqn\":\"lm_head.weight\","
        "\"what\":\"13 rows over 4\",\"help\":\"pad to 16\"}]}\n");
    sw_report_destroy(report);
}

static void every_error_is_said_and_the_first_not_twice(void **state)
{
    (void)state;
    sw_report *report = make_report();
    sw_report_add(report, SW_SEVERITY_ERROR, "heads", "l.0.attn", "use tp 1 or 2", "6 heads over 4");
    sw_report_add(report, SW_SEVERITY_WARNING, "unused", "", "", "nothing matched");
    sw_report_add(report, SW_SEVERITY_ERROR, "experts", "l.0.mlp", "", "6 experts over 4");
    sw_error err = failure("l.0.attn: 6 heads over 4 (and 1 more)", "use tp 1 or 2");
    expect(sw_message_text, &err, report,
           "shardwright: warning: nothing matched [unused]\n"
           "shardwright: l.0.attn: 6 heads over 4 [heads]\nhelp: use tp 1 or 2\n"
           "shardwright: l.0.mlp: 6 experts over 4 [experts]\n");
    err = failure("plan.json: no space left", "");
    expect(sw_message_text, &err, report,
           "shardwright: warning: nothing matched [unused]\n"
           "shardwright: l.0.attn: 6 heads over 4 [heads]\nhelp: use tp 1 or 2\n"
           "shardwright: l.0.mlp: 6 experts over 4 [experts]\n"
           "shardwright: plan.json: no space left\n");
    sw_report_destroy(report);
}

static void control_bytes_of_names_do_not_pass(void **state)
{
    (void)state;
    sw_error ok = {0};
    sw_report *report = make_report();
    sw_report_add(report, SW_SEVERITY_WARNING, "code", "a\x1b[31m\nb", "c\rd", "e\x7f");
    expect(sw_message_text, &ok, report, "shardwright: warning: a?[31m?b: e? [code]\nhelp: c?d\n");
    sw_report_destroy(report);
    report = make_report();
    sw_report_add(report, SW_SEVERITY_WARNING, "code",
                  "a\xc2\x9b"
                  "31m",
                  "",
                  "b \xe2\x80\xae"
                  "txt");
    expect(sw_message_text, &ok, report, "shardwright: warning: a??31m: b ???txt [code]\n");
    sw_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_without_findings_says_nothing),
        cmocka_unit_test(a_failure_is_two_lines),
        cmocka_unit_test(a_failure_is_one_json_object),
        cmocka_unit_test(warnings_are_said_also_of_a_success),
        cmocka_unit_test(every_error_is_said_and_the_first_not_twice),
        cmocka_unit_test(control_bytes_of_names_do_not_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
