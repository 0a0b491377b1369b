/* Findings inside the library: append as they are made. */
#ifndef SW_PLAN_REPORT_H
#define SW_PLAN_REPORT_H

#include <stdbool.h>

#include "shardwright/report.h"

/* Append a finding; everything is copied. When memory is gone the report says so in `is_cut`. */
void sw_report_add(sw_report *report, sw_severity severity, const char *code, const char *fqn,
                   const char *help, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Copy every finding of `from` after those of `to`. */
void sw_report_append(sw_report *to, const sw_report *from);

/* A finding was lost for want of memory. */
bool sw_report_is_cut(const sw_report *report);

/* SW_OK, or the first error finding as a failure of status SW_E_PLAN (with how many more there are). */
sw_status sw_report_status(const sw_report *report, sw_error *err);

#endif
