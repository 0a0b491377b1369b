/*
 * What a program says on standard error: findings and the account of a failure, for people (a line of what, a
 * line of help, no colours) or as one JSON object on one line:
 * {"error": {"status": ..., "what": ..., "help": ...} or null, "findings": [...]}
 */
#ifndef SW_CLI_MESSAGE_H
#define SW_CLI_MESSAGE_H

#include "base/buffer.h"
#include "shardwright/report.h"

/*
 * Warnings, then errors. `err` of status SW_OK is no failure; `report` may be NULL. A failure that is the
 * first error finding is not said twice. Notes are left out: they stand in results.
 */
void sw_message_text(sw_buffer *out, const sw_error *err, const sw_report *report);

/* The same as JSON, notes included; nothing at all when there is neither failure nor finding. */
void sw_message_json(sw_buffer *out, const sw_error *err, const sw_report *report);

#endif
