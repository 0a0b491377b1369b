/*
 * Plan files as text: a plan written, edited at one place and read again, for tests of the reader and of the
 * check. A text is the caller's, to be freed with sw_text_free() or plan_text_drop().
 */
#ifndef SW_TEST_PLAN_TEXT_H
#define SW_TEST_PLAN_TEXT_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "plan/plan_data.h"

/* The plan file of a plan. */
char *plan_text(const sw_plan *plan);

/* A copy with the first `from` replaced by `to` (single quotes stand for double ones); the test fails when
 * `from` is not there. */
char *plan_edited(const char *text, const char *from, const char *to);

/* The same in what stands behind the first `after`. */
char *plan_edited_after(const char *text, const char *after, const char *from, const char *to);

/* The plan of a text named "plan.json"; the test fails when it is refused. */
sw_plan *plan_parsed(const char *text);

/* Reading must fail with this status; `what` and `help` must be part of the message. */
void plan_refused(const char *text, sw_status status, const char *what, const char *help);

/* Reading and writing again must give the same bytes. */
void plan_same_again(const char *text);

#endif
