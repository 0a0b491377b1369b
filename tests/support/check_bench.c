/* Checks of edited plans: see the header. */
#include "check_bench.h"

#include <string.h>

#include "plan/report.h"
#include "plan_text.h"

bench bench_of(const tiny_case *what)
{
    bench b = {.t = tiny_plan(what)};

    b.text = plan_text(b.t.plan);
    return b;
}

void bench_drop(bench *b)
{
    sw_report_destroy(b->found);
    sw_text_free(b->text);
    tiny_drop(&b->t);
}

void bench_check(bench *b)
{
    sw_plan *plan = plan_parsed(b->text);
    sw_error err = {0};

    sw_report_destroy(b->found);
    assert_int_equal(sw_report_create(&b->found, NULL), SW_OK);
    b->status = sw_plan_check(plan, b->t.model, b->found, &err);
    if (b->status != SW_OK && b->status != SW_E_PLAN)
        fail_msg("status %s: %s", sw_status_name(b->status), err.what);
    assert_int_equal(b->status == SW_OK, sw_report_count_of(b->found, SW_SEVERITY_ERROR) == 0);
    sw_plan_destroy(plan);
}

void bench_edit_after(bench *b, const char *after, const char *from, const char *to)
{
    char *edited = plan_edited_after(b->text, after, from, to);

    sw_text_free(b->text);
    b->text = edited;
}

void bench_edit(bench *b, const char *from, const char *to)
{
    bench_edit_after(b, "", from, to);
}

void bench_must_find(const bench *b, sw_severity severity, const char *code, const char *what)
{
    for (size_t i = 0; i < sw_report_count(b->found); i++) {
        const sw_finding *f = sw_report_finding(b->found, i);
        if (f->severity == severity && strcmp(f->code, code) == 0 && strstr(f->what, what) != NULL)
            return;
    }
    for (size_t i = 0; i < sw_report_count(b->found); i++) {
        const sw_finding *f = sw_report_finding(b->found, i);
        print_message("  %s [%s] %s\n", sw_severity_name(f->severity), f->code, f->what);
    }
    fail_msg("no %s [%s] with '%s'", sw_severity_name(severity), code, what);
}
