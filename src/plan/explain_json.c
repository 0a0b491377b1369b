/* What was asked for as JSON: the same selection as in words, the same form as in the plan file. */
#include "base/status.h"
#include "plan/explain.h"
#include "plan/plan_write.h"

sw_status sw_explain_json(const sw_plan *plan, const char *pattern, sw_buffer *out, sw_error *err)
{
    sw_explain e = {.plan = plan, .options = SW_EXPLAIN_OPTIONS_INIT};

    if (pattern == NULL)
        return sw_plan_write(plan, out, err);
    e.options.pattern = pattern;
    e.arena = sw_arena_create(0);
    if (e.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory to explain a plan");
    sw_status status = sw_explain_select(&e, err);
    if (status == SW_OK)
        status = sw_plan_write_part(plan, e.is_shown, e.shown, out, err);
    sw_arena_destroy(e.arena);
    return status;
}
