/* Writing a plan file; the format is docs/formats/plan.md. */
#ifndef SW_PLAN_PLAN_WRITE_H
#define SW_PLAN_PLAN_WRITE_H

#include "plan/plan_data.h"

enum { SW_PLAN_VERSION = 1 };

/* Append the plan's JSON, one object and a final newline. SW_E_NO_MEMORY. */
sw_status sw_plan_write(const sw_plan *plan, sw_buffer *out, sw_error *err);

#endif
