/* Roles of a model line by line: the classes of its patterns, with the words of the rule that gave each. */
#include "plan/roles_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "mesh/mesh.h"
#include "plan/classify.h"
#include "plan/explain_text.h"
#include "plan/intern.h"
#include "plan/plan_make.h"

enum { RULE_TEXT_LIMIT = 4096 };

static void drop_plan(sw_plan **plan)
{
    sw_plan_destroy(*plan);
}

/* Lines while they are made: names of one pattern and one class are one. */
typedef struct making {
    sw_role_lines *lines;
    const sw_plan *plan;
    sw_map by_class; /* pattern and class -> line */
    uint32_t capacity;
    bool all;
    sw_error *err;
} making;

static sw_status no_memory(sw_error *err)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the roles of a model");
}

static sw_status add_line(making *m, const char *name, size_t length, const sw_class *class_)
{
    sw_arena *arena = m->lines->arena;
    char text[RULE_TEXT_LIMIT];

    sw_class_rule_text(m->plan, class_, text, sizeof text);
    const char *name_copy = sw_arena_copy(arena, name, length);
    const char *rule = sw_arena_format(arena, "%s", text);
    if (name_copy == NULL || rule == NULL ||
        !sw_plan_grow(arena, (void **)&m->lines->lines, &m->capacity, m->lines->n, sizeof *m->lines->lines))
        return no_memory(m->err);
    m->lines->lines[m->lines->n++] = (sw_role_line){.name = name_copy,
                                                    .n_params = 1,
                                                    .role = class_->role,
                                                    .rule = rule,
                                                    .reason = class_->reason,
                                                    .source = class_->source};
    return SW_OK;
}

static sw_status add_param(making *m, uint32_t i)
{
    const sw_model *model = m->plan->model;
    const sw_tensor_entry *t = sw_model_tensor(model, i);
    const sw_class *class_ = sw_class_of(m->plan, i);
    const struct {
        uint64_t pattern;
        const sw_class *class_;
    } key = {model->params[i].pattern, class_};
    bool is_new = false;

    if (m->all)
        return add_line(m, t->name, t->name_length, class_);
    uint32_t *line = sw_map_put(&m->by_class, &key, sizeof key, m->lines->n, &is_new);
    if (line == NULL)
        return no_memory(m->err);
    if (!is_new) {
        m->lines->lines[*line].n_params++;
        return SW_OK;
    }
    void *kept = sw_arena_alloc(m->lines->arena, sizeof key);
    if (kept == NULL)
        return no_memory(m->err);
    memcpy(kept, &key, sizeof key);
    sw_map_rekey(line, kept);
    const sw_pattern_node *p = &model->patterns[model->params[i].pattern];
    return p->n_params == 1 ? add_line(m, t->name, t->name_length, class_)
                            : add_line(m, p->text, p->length, class_);
}

sw_status sw_role_lines_make(sw_role_lines *out, const sw_model *model, const sw_overrides *overrides,
                             bool all, sw_error *err)
{
    sw_plan *plan SW_AUTO(drop_plan) = NULL;
    sw_mesh mesh;
    sw_status status = SW_OK;

    *out = (sw_role_lines){.arena = sw_arena_create(0)};
    if (out->arena == NULL)
        return no_memory(err);
    SW_TRY(sw_mesh_init(&mesh, "tp=1", 0, err));
    SW_TRY(sw_plan_make_empty(&plan, &mesh, err));
    plan->model = model;
    plan->architecture = model->architecture;
    plan->family = model->family == NULL ? "" : model->family->name;
    SW_TRY(sw_classify(plan, overrides, err));
    making m = {.lines = out, .plan = plan, .all = all, .err = err};
    for (uint32_t i = 0; i < model->n_params && status == SW_OK; i++)
        status = add_param(&m, i);
    sw_map_clear(&m.by_class);
    return status;
}

void sw_role_lines_clear(sw_role_lines *lines)
{
    sw_arena_destroy(lines->arena);
    *lines = (sw_role_lines){0};
}

/* The rule in words, without repeating the name that it matched exactly. */
static void put_rule(sw_text_table *table, const sw_role_line *line)
{
    const char *colon = strstr(line->rule, ": ");

    if (line->source == SW_RULE_FAMILY && colon != NULL && strcmp(colon + 2, line->name) == 0)
        sw_text_cell(table, "%.*s", (int)(colon - line->rule), line->rule);
    else
        sw_text_cell(table, "%s", line->rule);
}

sw_status sw_role_lines_put(const sw_role_lines *lines, sw_buffer *out, sw_error *err)
{
    static const char *const titles[] = {"name", "names", "role", "given by"};
    sw_arena *arena = sw_arena_create(0);

    if (arena == NULL)
        return no_memory(err);
    sw_text_table table = {.arena = arena, .n_columns = SW_COUNT(titles), .right = 1U << 1};
    sw_text_row(&table, titles);
    for (uint32_t i = 0; i < lines->n; i++) {
        const sw_role_line *line = &lines->lines[i];
        sw_text_cell(&table, "%s", line->name);
        sw_text_cell(&table, "%" PRIu32, line->n_params);
        sw_text_cell(&table, "%s%s%s%s", sw_role_name(line->role), line->reason == NULL ? "" : " (",
                     line->reason == NULL ? "" : line->reason, line->reason == NULL ? "" : ")");
        put_rule(&table, line);
    }
    sw_text_table_put(&table, 0, table.n_columns, out);
    bool failed = table.failed;
    sw_arena_destroy(arena);
    return failed ? no_memory(err) : SW_OK;
}
