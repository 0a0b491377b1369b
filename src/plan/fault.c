/* Collecting equal findings: two are equal when code, text, and the FQN without its counts are. */
#include "plan/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/intern.h"

enum { MOST_FAULTS = 5000 };

static uint32_t out_of_memory(sw_plan *plan)
{
    plan->is_out_of_memory = true; /* a lost finding must not pass for a sound plan */
    return UINT32_MAX;
}

/* Beyond a few thousand different ones nobody reads on: they are counted. */
static uint32_t too_many(sw_plan *plan, sw_severity severity)
{
    plan->n_more_faults[severity]++;
    return UINT32_MAX;
}

uint32_t sw_plan_fault(sw_plan *plan, sw_severity severity, const char *code, const char *fqn,
                       size_t fqn_length, const char *help, const char *format, ...)
{
    char what[768];
    va_list args;
    bool is_new = false;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *pattern = sw_plan_pattern(plan, fqn, fqn_length);
    char *key = sw_arena_format(plan->arena, "%s|%s|%s", code, pattern == NULL ? "" : pattern, what);
    if (pattern == NULL || key == NULL)
        return out_of_memory(plan);
    if (plan->n_faults >= MOST_FAULTS && sw_map_find(&plan->by_fault, key, strlen(key)) == NULL)
        return too_many(plan, severity);
    uint32_t *at = sw_map_put(&plan->by_fault, key, strlen(key), plan->n_faults, &is_new);
    if (at == NULL)
        return out_of_memory(plan);
    if (!is_new) {
        plan->faults[*at].n++;
        return *at;
    }

    char *fqn_copy = sw_arena_copy(plan->arena, fqn, fqn_length);
    char *help_copy = sw_arena_format(plan->arena, "%s", help);
    if (fqn_copy == NULL || help_copy == NULL ||
        !sw_plan_grow(plan->arena, (void **)&plan->faults, &plan->faults_capacity, plan->n_faults,
                      sizeof *plan->faults))
        return out_of_memory(plan);
    plan->faults[plan->n_faults] = (sw_fault){.severity = severity,
                                              .code = code,
                                              .fqn = fqn_copy,
                                              .pattern = pattern,
                                              .what = key + strlen(code) + strlen(pattern) + 2,
                                              .help = help_copy,
                                              .n = 1};
    return plan->n_faults++;
}

void sw_plan_fault_again(sw_plan *plan, uint32_t index)
{
    if (index < plan->n_faults)
        plan->faults[index].n++;
}

void sw_plan_faults_flush(sw_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const sw_fault *f = &plan->faults[i];
        const char *name = f->n > 1 ? f->pattern : f->fqn;
        const char *colon = name[0] == '\0' ? "" : ": ";
        if (f->n > 1)
            sw_report_add(plan->report, f->severity, f->code, name, f->help, "%s%s%s (%u alike)", name, colon,
                          f->what, f->n);
        else
            sw_report_add(plan->report, f->severity, f->code, name, f->help, "%s%s%s", name, colon, f->what);
    }
    for (int severity = 0; severity < SW_SEVERITY_COUNT_; severity++) {
        if (plan->n_more_faults[severity] > 0)
            sw_report_add(plan->report, (sw_severity)severity, "more_findings", "",
                          "mend the first ones and run again", "and %u further findings of this kind",
                          plan->n_more_faults[severity]);
        plan->n_more_faults[severity] = 0;
    }
    plan->n_faults = 0;
    sw_map_clear(&plan->by_fault);
}
