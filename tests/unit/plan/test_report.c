/* The list of findings: kept in order, copied, counted by severity, and turned into a status. */
#include "plan/report.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

static sw_report *make(void)
{
    sw_report *report = NULL;
    assert_int_equal(sw_report_create(&report, NULL), SW_OK);
    return report;
}

static void findings_are_kept_in_order_and_copied(void **state)
{
    char fqn[] = "model.norm";
    sw_report *report = make();
    (void)state;
    sw_report_add(report, SW_SEVERITY_NOTE, "one", fqn, "", "%d", 1);
    sw_report_add(report, SW_SEVERITY_ERROR, "two", "", "help", "%s", "what");
    fqn[0] = 'X';
    assert_int_equal(sw_report_count(report), 2);
    const sw_finding *f = sw_report_finding(report, 0);
    assert_string_equal(f->fqn, "model.norm");
    assert_string_equal(f->code, "one");
    assert_string_equal(f->what, "1");
    assert_string_equal(f->help, "");
    assert_int_equal(sw_report_finding(report, 1)->severity, SW_SEVERITY_ERROR);
    assert_null(sw_report_finding(report, 2));
    sw_report_destroy(report);
    sw_report_destroy(NULL);
}

static void many_findings_keep_their_places(void **state)
{
    sw_report *report = make();
    (void)state;
    for (int i = 0; i < 1000; i++)
        sw_report_add(report, (sw_severity)(i % 3), "code", "", "", "%d", i);
    assert_int_equal(sw_report_count(report), 1000);
    assert_string_equal(sw_report_finding(report, 777)->what, "777");
    assert_int_equal(sw_report_count_of(report, SW_SEVERITY_NOTE), 334);
    assert_int_equal(sw_report_count_of(report, SW_SEVERITY_WARNING), 333);
    assert_int_equal(sw_report_count_of(report, SW_SEVERITY_ERROR), 333);
    assert_false(sw_report_is_cut(report));
    sw_report_destroy(report);
}

static void one_report_is_appended_to_another(void **state)
{
    sw_report *to = make();
    sw_report *from = make();
    (void)state;
    sw_report_add(to, SW_SEVERITY_NOTE, "a", "", "", "100%% of %s", "it");
    sw_report_add(from, SW_SEVERITY_WARNING, "b", "x", "y", "100%% of %s", "that");
    sw_report_append(to, from);
    sw_report_destroy(from);
    assert_int_equal(sw_report_count(to), 2);
    assert_string_equal(sw_report_finding(to, 1)->what, "100% of that");
    assert_string_equal(sw_report_finding(to, 1)->help, "y");
    sw_report_destroy(to);
}

static void without_an_error_the_status_is_ok(void **state)
{
    sw_report *report = make();
    sw_error err = {0};
    (void)state;
    assert_int_equal(sw_report_status(report, &err), SW_OK);
    sw_report_add(report, SW_SEVERITY_WARNING, "w", "", "", "warned");
    assert_int_equal(sw_report_status(report, &err), SW_OK);
    assert_int_equal(err.status, SW_OK);
    sw_report_destroy(report);
}

static void the_first_error_is_the_failure_and_the_others_are_counted(void **state)
{
    sw_report *report = make();
    sw_error err = {0};
    (void)state;
    sw_report_add(report, SW_SEVERITY_WARNING, "w", "", "", "warned");
    sw_report_add(report, SW_SEVERITY_ERROR, "first", "a", "do this", "first fault");
    assert_int_equal(sw_report_status(report, &err), SW_E_PLAN);
    assert_string_equal(err.what, "first fault [first]");
    assert_string_equal(err.help, "do this");
    sw_report_add(report, SW_SEVERITY_ERROR, "second", "a", "", "second fault");
    sw_report_add(report, SW_SEVERITY_ERROR, "third", "a", "", "third fault");
    assert_int_equal(sw_report_status(report, &err), SW_E_PLAN);
    assert_string_equal(err.what, "first fault [first] (and 2 more)");
    assert_int_equal(sw_report_status(report, NULL), SW_E_PLAN);
    sw_report_destroy(report);
}

static void severities_have_words(void **state)
{
    (void)state;
    assert_string_equal(sw_severity_name(SW_SEVERITY_NOTE), "note");
    assert_string_equal(sw_severity_name(SW_SEVERITY_WARNING), "warning");
    assert_string_equal(sw_severity_name(SW_SEVERITY_ERROR), "error");
    assert_null(sw_severity_name(SW_SEVERITY_COUNT_));
}

static void a_long_text_is_cut_and_not_lost(void **state)
{
    char text[4096];
    sw_report *report = make();
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sw_report_add(report, SW_SEVERITY_ERROR, "long", "", "", "%s", text);
    assert_int_equal(sw_report_count(report), 1);
    assert_true(strlen(sw_report_finding(report, 0)->what) > 500);
    sw_report_destroy(report);
}

static void a_finding_lost_for_want_of_memory_is_no_sound_report(void **state)
{
    bool was_cut = false;
    (void)state;
    for (uint64_t n = 1;; n++) {
        sw_report *report = NULL;
        sw_error err = {0};
        sw_alloc_fail_at(n);
        if (sw_report_create(&report, &err) == SW_OK)
            sw_report_add(report, SW_SEVERITY_NOTE, "a", "b", "c", "d");
        sw_alloc_fail_at(0);
        if (report == NULL) {
            assert_int_equal(err.status, SW_E_NO_MEMORY);
            continue;
        }
        bool cut = sw_report_is_cut(report);
        was_cut = was_cut || cut;
        assert_int_equal(sw_report_status(report, NULL), cut ? SW_E_NO_MEMORY : SW_OK);
        sw_report_destroy(report);
        if (!cut)
            break;
    }
    assert_true(was_cut);
    assert_int_equal(sw_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_kept_in_order_and_copied),
        cmocka_unit_test(many_findings_keep_their_places),
        cmocka_unit_test(one_report_is_appended_to_another),
        cmocka_unit_test(without_an_error_the_status_is_ok),
        cmocka_unit_test(the_first_error_is_the_failure_and_the_others_are_counted),
        cmocka_unit_test(severities_have_words),
        cmocka_unit_test(a_long_text_is_cut_and_not_lost),
        cmocka_unit_test(a_finding_lost_for_want_of_memory_is_no_sound_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
