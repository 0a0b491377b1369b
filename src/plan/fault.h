/*
 * Faults of a plan while it is made. The same fault in forty layers is one finding with a count: findings are
 * collected here and go to the report in order when a phase ends.
 */
#ifndef SW_PLAN_FAULT_H
#define SW_PLAN_FAULT_H

#include "plan/plan_data.h"

/* Add a finding about `fqn`, or count one more of an equal one. Returns its index, UINT32_MAX without memory.
 */
uint32_t sw_plan_fault(sw_plan *plan, sw_severity severity, const char *code, const char *fqn,
                       size_t fqn_length, const char *help, const char *format, ...)
    __attribute__((format(printf, 7, 8)));

/* The same finding once more (for a parameter whose answer was remembered). */
void sw_plan_fault_again(sw_plan *plan, uint32_t index);

/* Move everything collected to the plan's report. */
void sw_plan_faults_flush(sw_plan *plan);

#endif
