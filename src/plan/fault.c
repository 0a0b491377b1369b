/*
 * Collecting equal findings: two are equal when code, text, and the FQN without its counts are. What has one
 * cause for the whole model is equal whatever the FQN: the first stands for all.
 */
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

static bool is_of_the_model(const char *code)
{
    static const char *const codes[] = {"quant_unknown"};

    for (size_t i = 0; i < SW_COUNT(codes); i++) {
        if (strcmp(codes[i], code) == 0)
            return true;
    }
    return false;
}

/* Code, text and pattern, parted by NUL: made beside the arena, since most findings are there already. */
static bool put_texts(sw_plan *plan, const char *code, const char *fqn, size_t fqn_length, const char *what)
{
    sw_buffer *texts = &plan->fault_key;

    texts->length = 0;
    sw_buffer_puts(texts, code);
    sw_buffer_putc(texts, '\0');
    sw_buffer_puts(texts, what);
    sw_buffer_putc(texts, '\0');
    sw_plan_put_pattern(texts, fqn, fqn_length);
    return sw_buffer_text(texts) != NULL;
}

/* The texts of its key become those of the fault. */
static uint32_t add_fault(sw_plan *plan, sw_fault *fault, size_t key_length)
{
    const sw_buffer *texts = &plan->fault_key;
    const char *kept = sw_arena_copy(plan->arena, texts->bytes, texts->length);
    bool is_new = false;

    if (kept == NULL ||
        !sw_plan_grow(plan->arena, (void **)&plan->faults, &plan->faults_capacity, plan->n_faults,
                      sizeof *plan->faults) ||
        sw_map_put(&plan->by_fault, kept, key_length, plan->n_faults, &is_new) == NULL)
        return out_of_memory(plan);
    fault->what = kept + strlen(kept) + 1;
    fault->pattern = fault->what + strlen(fault->what) + 1;
    plan->faults[plan->n_faults] = *fault;
    return plan->n_faults++;
}

uint32_t sw_plan_fault(sw_plan *plan, sw_severity severity, const char *code, const char *fqn,
                       size_t fqn_length, const char *help, const char *format, ...)
{
    char what[768];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!put_texts(plan, code, fqn, fqn_length, what))
        return out_of_memory(plan);
    size_t key_length = is_of_the_model(code) ? strlen(code) + 1 + strlen(what) + 1 : plan->fault_key.length;
    const uint32_t *known = sw_map_find(&plan->by_fault, plan->fault_key.bytes, key_length);
    if (known != NULL) {
        plan->faults[*known].n++;
        return *known;
    }
    if (plan->n_faults >= MOST_FAULTS)
        return too_many(plan, severity);
    sw_fault fault = {.severity = severity, .code = code, .n = 1};
    fault.fqn = sw_arena_copy(plan->arena, fqn, fqn_length);
    fault.help = sw_arena_format(plan->arena, "%s", help);
    return fault.fqn == NULL || fault.help == NULL ? out_of_memory(plan)
                                                   : add_fault(plan, &fault, key_length);
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
