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

/* "code|pattern|what": made beside the arena, since most findings are there already. */
static const char *make_key(sw_plan *plan, const char *code, const char *fqn, size_t fqn_length,
                            const char *what, size_t *what_at)
{
    sw_buffer *key = &plan->fault_key;

    key->length = 0;
    sw_buffer_puts(key, code);
    sw_buffer_putc(key, '|');
    sw_plan_put_pattern(key, fqn, fqn_length);
    sw_buffer_putc(key, '|');
    *what_at = key->length;
    sw_buffer_puts(key, what);
    return sw_buffer_text(key);
}

/* The texts of its key become those of the fault. */
static uint32_t add_fault(sw_plan *plan, sw_fault *fault, size_t what_at)
{
    const sw_buffer *key = &plan->fault_key;
    size_t pattern_at = strlen(fault->code) + 1;
    char *kept = sw_arena_copy(plan->arena, key->bytes, key->length);
    bool is_new = false;

    fault->pattern = sw_arena_copy(plan->arena, key->bytes + pattern_at, what_at - 1 - pattern_at);
    if (kept == NULL || fault->pattern == NULL ||
        !sw_plan_grow(plan->arena, (void **)&plan->faults, &plan->faults_capacity, plan->n_faults,
                      sizeof *plan->faults) ||
        sw_map_put(&plan->by_fault, kept, key->length, plan->n_faults, &is_new) == NULL)
        return out_of_memory(plan);
    fault->what = kept + what_at;
    plan->faults[plan->n_faults] = *fault;
    return plan->n_faults++;
}

uint32_t sw_plan_fault(sw_plan *plan, sw_severity severity, const char *code, const char *fqn,
                       size_t fqn_length, const char *help, const char *format, ...)
{
    char what[768];
    va_list args;
    size_t what_at = 0;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *key = make_key(plan, code, fqn, fqn_length, what, &what_at);
    if (key == NULL)
        return out_of_memory(plan);
    const uint32_t *known = sw_map_find(&plan->by_fault, key, plan->fault_key.length);
    if (known != NULL) {
        plan->faults[*known].n++;
        return *known;
    }
    if (plan->n_faults >= MOST_FAULTS)
        return too_many(plan, severity);
    sw_fault fault = {.severity = severity, .code = code, .n = 1};
    fault.fqn = sw_arena_copy(plan->arena, fqn, fqn_length);
    fault.help = sw_arena_format(plan->arena, "%s", help);
    return fault.fqn == NULL || fault.help == NULL ? out_of_memory(plan) : add_fault(plan, &fault, what_at);
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
