/* The tables that plans are derived from, printed from the tables themselves: role rules, then templates. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/explain_text.h"
#include "plan/role.h"
#include "plan/roles_report.h"
#include "plan/template.h"

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the rules");
}

static void put_rules(sw_arena *arena, sw_buffer *out)
{
    static const char *const titles[] = {"rule", "role", "match", "patterns"};
    sw_text_table table = {.arena = arena, .n_columns = SW_COUNT(titles), .right = 1U};

    sw_text_line(out, "role rules: the first that matches a lower-cased name gives its role; no rule: skip");
    sw_text_row(&table, titles);
    for (size_t i = 0; i < sw_default_role_rules.n_rules; i++) {
        const sw_role_rule *rule = &sw_default_role_rules.rules[i];
        sw_buffer patterns = {0};
        for (const char *const *p = rule->patterns; *p != NULL; p++)
            sw_buffer_printf(&patterns, "%s%s", p == rule->patterns ? "" : " ", *p);
        const char *text = sw_buffer_text(&patterns);
        sw_text_cell(&table, "%zu", i + 1);
        sw_text_cell(&table, "%s", sw_role_name(rule->role));
        sw_text_cell(&table, "%s", sw_match_mode_name(rule->mode));
        sw_text_cell(&table, "%s", text == NULL ? "" : text);
        table.failed = table.failed || text == NULL;
        sw_buffer_clear(&patterns);
    }
    sw_text_table_put(&table, 0, table.n_columns, out);
}

static void place_text(sw_template_place place, char *text, size_t capacity)
{
    sw_placement p = {.kind = (sw_placement_kind)place.kind, .dim = place.dim};

    if (place.is_declared)
        (void)sw_placement_text(&p, text, capacity);
    else
        (void)snprintf(text, capacity, "-");
}

/* "tp S(1) -> R". */
static void put_step(sw_text_table *table, const char *axis, sw_template_place from, sw_template_place to)
{
    char a[16];
    char b[16];

    place_text(from, a, sizeof a);
    place_text(to, b, sizeof b);
    if (strcmp(a, b) == 0)
        sw_text_cell(table, "%s %s", axis, a);
    else
        sw_text_cell(table, "%s %s -> %s", axis, a, b);
}

static void put_side(sw_text_table *table, const char *title, const char *name, const sw_template_side *from,
                     const sw_template_side *to)
{
    sw_text_cell(table, "%s", title);
    sw_text_cell(table, "%s", name);
    put_step(table, "tp", from->tp, to->tp);
    put_step(table, "cp", from->cp, to->cp);
    put_step(table, "ep", from->ep, to->ep);
}

static void put_template(const sw_template *t, sw_arena *arena, sw_buffer *out)
{
    char column[16];
    char row[16];
    char norm[16];
    char expert[16];
    sw_text_table table = {.arena = arena, .n_columns = 5};

    place_text(t->colwise, column, sizeof column);
    place_text(t->rowwise, row, sizeof row);
    place_text(t->norm, norm, sizeof norm);
    place_text(t->expert, expert, sizeof expert);
    sw_text_line(out, "%s", "");
    sw_text_line(out, "%s", sw_boundary_type_name(t->type));
    sw_text_line(out, "  parameters over tp: column %s, row %s, norm %s; experts over ep: %s", column, row,
                 norm, expert);
    if (t->input == NULL) {
        sw_text_line(out, "  no contract");
        return;
    }
    put_side(&table, "sequence parallel  in", t->input, &t->sp.in_src, &t->sp.in_dst);
    put_side(&table, "sequence parallel  out", "output", &t->sp.out_src, &t->sp.out_dst);
    put_side(&table, "without it         in", t->input, &t->nosp.in_src, &t->nosp.in_dst);
    put_side(&table, "without it         out", "output", &t->nosp.out_src, &t->nosp.out_dst);
    sw_text_table_put(&table, 2, table.n_columns, out);
    if (t->needs_cp_attn)
        sw_text_line(out, "  attention must see the keys and values of every cp rank");
    if (t->region_dispatch >= 0)
        sw_text_line(out, "  region_dispatch %s", t->region_dispatch != 0 ? "true" : "false");
}

sw_status sw_rules_put(sw_buffer *out, sw_error *err)
{
    sw_arena *arena = sw_arena_create(0);

    if (arena == NULL)
        return no_memory(err);
    put_rules(arena, out);
    sw_text_line(out, "%s", "");
    sw_text_line(out, "templates: what each type of boundary declares");
    for (int type = 0; type < SW_BOUNDARY_COUNT_; type++) {
        const sw_template *t = sw_template_of((sw_boundary_type)type);
        if (t != NULL)
            put_template(t, arena, out);
    }
    sw_arena_destroy(arena);
    return out->failed ? no_memory(err) : SW_OK;
}
