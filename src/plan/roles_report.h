/*
 * What the first phase says of a model, without a plan: the role of every name and the rule that gave it; and
 * the default rules and templates themselves, as tables for people.
 */
#ifndef SW_PLAN_ROLES_REPORT_H
#define SW_PLAN_ROLES_REPORT_H

#include "base/buffer.h"
#include "plan/override.h"

/* One name, or equal ones: a pattern with '#' for each count. */
typedef struct sw_role_line {
    const char *name;
    uint32_t n_params;
    sw_role role;
    const char *rule;   /* "family llama: model.norm.weight", "default rule 9: norm", "no rule" */
    const char *reason; /* of a skipped buffer; else NULL */
    sw_rule_source source;
} sw_role_line;

typedef struct sw_role_lines {
    sw_arena *arena;
    sw_role_line *lines;
    uint32_t n;
} sw_role_lines;

/*
 * Roles of a model in its order, one line a pattern (with `all`: one a name). `overrides` may be NULL. Give
 * the lines to sw_role_lines_clear(), also after a failure.
 */
sw_status sw_role_lines_make(sw_role_lines *out, const sw_model *model, const sw_overrides *overrides,
                             bool all, sw_error *err);
void sw_role_lines_clear(sw_role_lines *lines);

/* The lines as a table for people. */
sw_status sw_role_lines_put(const sw_role_lines *lines, sw_buffer *out, sw_error *err);

/* The default role rules and the templates. */
sw_status sw_rules_put(sw_buffer *out, sw_error *err);

#endif
