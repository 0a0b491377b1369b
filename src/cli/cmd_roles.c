/* `shardwright roles`: the role of each parameter of a model, and the rule that gave it. */
#include "base/status.h"
#include "cli/command.h"
#include "cli/input.h"
#include "io/json_write.h"
#include "plan/roles_report.h"

enum { OPT_OVERRIDES, OPT_PLUGIN, OPT_ALL, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_OVERRIDES] = SW_OPTION_OVERRIDES,
    [OPT_PLUGIN]    = SW_OPTION_PLUGIN,
    [OPT_ALL]       = { "all",  'a', NULL, "a line for each name, not for each pattern of names" },
    [OPT_JSON]      = { "json", 0,   NULL, "write JSON, also of errors" },
    { 0 },
};
// clang-format on

typedef struct work {
    sw_model *model;
    sw_overrides *overrides;
    sw_role_lines lines;
} work;

static void drop_work(work *w)
{
    sw_role_lines_clear(&w->lines);
    sw_overrides_destroy(w->overrides);
    sw_model_close(w->model);
}

static void put_text(sw_json_writer *writer, const char *key, const char *text)
{
    sw_json_key(writer, key);
    sw_json_put_string(writer, text);
}

static void put_json(const work *w, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    put_text(&writer, "architecture", sw_model_architecture(w->model));
    sw_json_key(&writer, "roles");
    sw_json_begin_array(&writer);
    for (uint32_t i = 0; i < w->lines.n; i++) {
        const sw_role_line *line = &w->lines.lines[i];
        sw_json_inline(&writer);
        sw_json_begin_object(&writer);
        put_text(&writer, "name", line->name);
        sw_json_key(&writer, "names");
        sw_json_put_u64(&writer, line->n_params);
        put_text(&writer, "role", sw_role_name(line->role));
        put_text(&writer, "rule", line->rule);
        if (line->reason != NULL)
            put_text(&writer, "reason", line->reason);
        sw_json_end_object(&writer);
    }
    sw_json_end_array(&writer);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

static sw_status run_roles(sw_run *run, sw_error *err)
{
    work w SW_AUTO(drop_work) = {0};
    const sw_arguments *arguments = &run->arguments;

    SW_TRY(sw_input_overrides(&w.overrides, arguments, OPT_OVERRIDES, OPT_PLUGIN, err));
    SW_TRY(sw_model_open(&w.model, arguments->operands[0], err));
    SW_TRY(sw_role_lines_make(&w.lines, w.model, w.overrides, sw_arguments_has(arguments, OPT_ALL), err));
    if (!sw_arguments_has(arguments, OPT_JSON))
        return sw_role_lines_put(&w.lines, &run->out, err);
    put_json(&w, &run->out);
    return SW_OK;
}

const sw_command sw_command_roles = {
    .name = "roles",
    .summary = "show the role of each parameter, and the rule that gave it",
    .usage = "MODEL [--overrides FILE] [--plugin FILE] [--all] [--json]",
    .description =
        "Show what each parameter of MODEL is, and which rule says so. Names that differ by numbers of\n"
        "layers or experts only are one line. `shardwright explain --rules` shows the rules.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_roles,
};
