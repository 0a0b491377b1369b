/*
 * `shardwright explain`: a plan file in words, whole or the part that a name asks for; with --check every
 * lint again on a given plan and its model; with --rules the tables that plans are derived from.
 */
#include <inttypes.h>

#include "base/status.h"
#include "cli/command.h"
#include "io/json_write.h"
#include "plan/explain.h"
#include "plan/roles_report.h"
#include "shardwright/plan.h"

enum { OPT_RANK, OPT_ALL, OPT_CHECK, OPT_RULES, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_RANK]  = { "rank",  'r', "R",  "show what rank R holds; rank 0 is shown otherwise" },
    [OPT_ALL]   = { "all",   'a', NULL, "do not fold equal layers and experts" },
    [OPT_CHECK] = { "check", 0,   NULL, "check PLAN against MODEL: every rule again" },
    [OPT_RULES] = { "rules", 0,   NULL, "show the default role rules and templates" },
    [OPT_JSON]  = { "json",  0,   NULL, "write JSON, also of errors" },
    { 0 },
};
// clang-format on

typedef struct work {
    sw_model *model;
    sw_plan *plan;
} work;

static void drop_work(work *w)
{
    sw_plan_destroy(w->plan);
    sw_model_close(w->model);
}

/* Which of the three is meant, and does the rest of the line go with it? */
static sw_status check_line(const sw_arguments *arguments, sw_error *err)
{
    bool is_check = sw_arguments_has(arguments, OPT_CHECK);
    bool is_rules = sw_arguments_has(arguments, OPT_RULES);
    uint32_t needed = is_rules ? 0 : is_check ? 2 : 1;

    SW_TRY(sw_arguments_exclude(arguments, OPT_RULES, OPT_CHECK, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_RULES, OPT_RANK, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_RULES, OPT_ALL, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_RULES, OPT_JSON, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_CHECK, OPT_RANK, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_CHECK, OPT_ALL, err));
    SW_TRY(sw_arguments_exclude(arguments, OPT_JSON, OPT_RANK, err));
    if (is_rules && arguments->n_operands > 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "write --rules alone", "unexpected operand '%.60s'",
                       arguments->operands[0]);
    if (arguments->n_operands < needed) {
        return SW_FAIL(err, SW_E_ARGUMENT,
                       is_check ? "usage: shardwright explain --check PLAN MODEL"
                                : "usage: shardwright explain PLAN [NAME|GLOB] [--rank R] [--all] [--json]",
                       "explain%s needs %s, %" PRIu32 " operand%s given", is_check ? " --check" : "",
                       is_check ? "a plan file and a model" : "a plan file", arguments->n_operands,
                       arguments->n_operands == 1 ? "" : "s");
    }
    return SW_OK;
}

static void put_verdict(const sw_report *report, const char *plan, const char *model, sw_buffer *out)
{
    sw_buffer_printf(out, "%s: fits %s, no errors, %zu warnings\n", plan, model,
                     sw_report_count_of(report, SW_SEVERITY_WARNING));
    for (size_t i = 0; i < sw_report_count(report); i++) {
        const sw_finding *f = sw_report_finding(report, i);
        if (f->severity == SW_SEVERITY_NOTE)
            sw_buffer_printf(out, "note: %s [%s]\n", f->what, f->code);
    }
}

/* The findings themselves go where failures go. */
static void put_verdict_json(const sw_report *report, const char *plan, const char *model, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    sw_json_key(&writer, "plan");
    sw_json_put_string(&writer, plan);
    sw_json_key(&writer, "model");
    sw_json_put_string(&writer, model);
    sw_json_key(&writer, "warnings");
    sw_json_put_u64(&writer, sw_report_count_of(report, SW_SEVERITY_WARNING));
    sw_json_key(&writer, "notes");
    sw_json_put_u64(&writer, sw_report_count_of(report, SW_SEVERITY_NOTE));
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

static sw_status check_plan(sw_run *run, work *w, sw_error *err)
{
    char **operands = run->arguments.operands;
    bool is_json = sw_arguments_has(&run->arguments, OPT_JSON);

    SW_TRY(sw_model_open(&w->model, operands[1], err));
    SW_TRY(sw_plan_check(w->plan, w->model, run->report, err));
    (is_json ? put_verdict_json : put_verdict)(run->report, operands[0], operands[1], &run->out);
    return SW_OK;
}

static sw_status print_plan(sw_run *run, const sw_plan *plan, sw_error *err)
{
    sw_explain_options choices = SW_EXPLAIN_OPTIONS_INIT;
    const sw_arguments *arguments = &run->arguments;
    char *text = NULL;
    size_t length = 0;

    SW_TRY(
        sw_arguments_u32(arguments, OPT_RANK, 0, sw_mesh_ranks(sw_plan_mesh(plan)) - 1, &choices.rank, err));
    choices.has_rank = sw_arguments_has(arguments, OPT_RANK);
    choices.all = sw_arguments_has(arguments, OPT_ALL);
    choices.pattern = arguments->n_operands > 1 ? arguments->operands[1] : NULL;
    if (sw_arguments_has(arguments, OPT_JSON))
        return sw_explain_json(plan, choices.pattern, &run->out, err);
    SW_TRY(sw_plan_explain(plan, &choices, &text, &length, err));
    sw_buffer_append(&run->out, text, length);
    sw_text_free(text);
    return SW_OK;
}

static sw_status run_explain(sw_run *run, sw_error *err)
{
    work w SW_AUTO(drop_work) = {0};

    SW_TRY(check_line(&run->arguments, err));
    if (sw_arguments_has(&run->arguments, OPT_RULES))
        return sw_rules_put(&run->out, err);
    SW_TRY(sw_plan_load(&w.plan, run->arguments.operands[0], err));
    if (sw_arguments_has(&run->arguments, OPT_CHECK))
        return check_plan(run, &w, err);
    return print_plan(run, w.plan, err);
}

const sw_command sw_command_explain = {
    .name = "explain",
    .summary = "explain a plan file, or check it against a model",
    .usage = "PLAN [NAME|GLOB] [--rank R] [-a] [--json] | --check PLAN MODEL | --rules",
    .description =
        "Explain a plan file: boundaries, parameters, transitions and what they cost. NAME is a boundary\n"
        "or parameter (with all that is below it); a GLOB such as '*.mlp' is held against both.\n",
    .options = options,
    .max_operands = 2,
    .run = run_explain,
};
