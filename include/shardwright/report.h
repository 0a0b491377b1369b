/*
 * Findings: everything a check has to say, not only the first fault. A report belongs to the plan or call
 * that made it; its strings are borrowed from it. Codes are stable and listed in docs/reference/findings.md.
 */
#ifndef SHARDWRIGHT_REPORT_H
#define SHARDWRIGHT_REPORT_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sw_severity {
    SW_SEVERITY_NOTE = 0,
    SW_SEVERITY_WARNING,
    SW_SEVERITY_ERROR,
    SW_SEVERITY_COUNT_
} sw_severity;

/** One finding. */
typedef struct sw_finding {
    sw_severity severity;
    const char *code; /**< "uneven_vocab": stable */
    const char *fqn;  /**< parameter, boundary or axis it is about; "" when about the whole */
    const char *what; /**< one line: what is wrong, with numbers */
    const char *help; /**< one line: what to do; may be "" */
} sw_finding;

/** A list of findings; opaque. */
typedef struct sw_report sw_report;

/** An empty report; yours, to be given to sw_report_destroy(). */
SW_API SW_MUST_CHECK sw_status sw_report_create(sw_report **out, sw_error *err);

/** Free a report and the findings borrowed from it. NULL is fine. */
SW_API void sw_report_destroy(sw_report *report);

/** Number of findings, in the order in which they were made. */
SW_API size_t sw_report_count(const sw_report *report);

/** Number of findings of one severity. */
SW_API size_t sw_report_count_of(const sw_report *report, sw_severity severity);

/** Finding `i`, borrowed from the report; NULL when there is none. */
SW_API const sw_finding *sw_report_finding(const sw_report *report, size_t i);

/** "note", "warning", "error"; NULL when out of range. */
SW_API const char *sw_severity_name(sw_severity severity);

#ifdef __cplusplus
}
#endif
#endif
