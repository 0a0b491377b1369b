/* The list of findings: an arena of strings and an array of records. Order is the order of discovery. */
#include "plan/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/status.h"

enum { REPORT_LIMIT = 64 << 20, MAX_FINDINGS = 100000 };

struct sw_report {
    sw_arena *arena;
    sw_finding *findings;
    size_t n_findings;
    size_t capacity;
    bool is_cut;
};

static const char *const severity_names[] = {
    [SW_SEVERITY_NOTE] = "note",
    [SW_SEVERITY_WARNING] = "warning",
    [SW_SEVERITY_ERROR] = "error",
};

_Static_assert(SW_COUNT(severity_names) == SW_SEVERITY_COUNT_, "a name for every severity");

const char *sw_severity_name(sw_severity severity)
{
    return (unsigned)severity < SW_SEVERITY_COUNT_ ? severity_names[severity] : NULL;
}

sw_status sw_report_create(sw_report **out, sw_error *err)
{
    SW_NEED(out, err);
    *out = NULL;
    sw_report *report = sw_alloc_zero(1, sizeof *report);
    if (report != NULL)
        report->arena = sw_arena_create(REPORT_LIMIT);
    if (report == NULL || report->arena == NULL) {
        sw_report_destroy(report);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a report");
    }
    *out = report;
    return SW_OK;
}

void sw_report_destroy(sw_report *report)
{
    if (report == NULL)
        return;
    sw_arena_destroy(report->arena);
    sw_free(report->findings);
    sw_free(report);
}

size_t sw_report_count(const sw_report *report)
{
    return report == NULL ? 0 : report->n_findings;
}

size_t sw_report_count_of(const sw_report *report, sw_severity severity)
{
    size_t n = 0;
    for (size_t i = 0; i < sw_report_count(report); i++)
        n += report->findings[i].severity == severity;
    return n;
}

const sw_finding *sw_report_finding(const sw_report *report, size_t i)
{
    return i < sw_report_count(report) ? &report->findings[i] : NULL;
}

bool sw_report_is_cut(const sw_report *report)
{
    return report->is_cut;
}

static bool make_room(sw_report *report)
{
    if (report->n_findings < report->capacity)
        return true;
    if (report->n_findings >= MAX_FINDINGS)
        return false;
    size_t capacity = report->capacity == 0 ? 16 : report->capacity * 2;
    sw_finding *grown = sw_realloc(report->findings, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    report->findings = grown;
    report->capacity = capacity;
    return true;
}

void sw_report_add(sw_report *report, sw_severity severity, const char *code, const char *fqn,
                   const char *help, const char *format, ...)
{
    char what[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *code_copy = sw_arena_format(report->arena, "%s", code);
    const char *what_copy = sw_arena_format(report->arena, "%s", what);
    const char *fqn_copy = sw_arena_format(report->arena, "%s", fqn);
    const char *help_copy = sw_arena_format(report->arena, "%s", help);
    if (code_copy == NULL || what_copy == NULL || fqn_copy == NULL || help_copy == NULL ||
        !make_room(report)) {
        report->is_cut = true;
        return;
    }
    report->findings[report->n_findings++] =
        (sw_finding){severity, code_copy, fqn_copy, what_copy, help_copy};
}

void sw_report_append(sw_report *to, const sw_report *from)
{
    for (size_t i = 0; i < from->n_findings; i++) {
        const sw_finding *f = &from->findings[i];
        sw_report_add(to, f->severity, f->code, f->fqn, f->help, "%s", f->what);
    }
    to->is_cut = to->is_cut || from->is_cut;
}

sw_status sw_report_status(const sw_report *report, sw_error *err)
{
    size_t n = sw_report_count_of(report, SW_SEVERITY_ERROR);

    if (report->is_cut)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the findings of a plan");
    for (size_t i = 0; n > 0 && i < report->n_findings; i++) {
        const sw_finding *f = &report->findings[i];
        if (f->severity != SW_SEVERITY_ERROR)
            continue;
        if (n == 1)
            return SW_FAIL(err, SW_E_PLAN, f->help, "%s [%s]", f->what, f->code);
        return SW_FAIL(err, SW_E_PLAN, f->help, "%s [%s] (and %zu more)", f->what, f->code, n - 1);
    }
    return SW_OK;
}
