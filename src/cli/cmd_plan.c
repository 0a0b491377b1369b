/*
 * `shardwright plan`: a model and a mesh in, the explained plan out. The plan file (-o) appears under its
 * name only when complete; what is printed is for people, or with --json the file's bytes.
 */
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/planning.h"
#include "shardwright/plan.h"

enum {
    OPT_MESH,
    OPT_EP,
    OPT_NO_SP,
    OPT_LOSS_PARALLEL,
    OPT_OVERRIDES,
    OPT_PLUGIN,
    OPT_STRICT,
    OPT_ALLOW_UNCOVERED,
    OPT_OUTPUT,
    OPT_JSON,
    OPT_ALL,
    OPT_QUIET
};

// clang-format off
static const sw_option options[] = {
    [OPT_MESH]            = SW_OPTION_MESH,
    [OPT_EP]              = SW_OPTION_EP,
    [OPT_NO_SP]           = SW_OPTION_NO_SP,
    [OPT_LOSS_PARALLEL]   = SW_OPTION_LOSS_PARALLEL,
    [OPT_OVERRIDES]       = SW_OPTION_OVERRIDES,
    [OPT_PLUGIN]          = SW_OPTION_PLUGIN,
    [OPT_STRICT]          = SW_OPTION_STRICT,
    [OPT_ALLOW_UNCOVERED] = SW_OPTION_ALLOW_UNCOVERED,
    [OPT_OUTPUT]          = { "output",          'o', "FILE", "write the plan file; - is standard output" },
    [OPT_JSON]            = { "json",            0,   NULL,   "print the plan file's JSON, and errors as JSON" },
    [OPT_ALL]             = { "all",             'a', NULL,   "do not fold equal layers and experts" },
    [OPT_QUIET]           = { "quiet",           'q', NULL,   "print no plan, only what is wrong" },
    { 0 },
};
// clang-format on

static const sw_planning_rows rows = {
    OPT_MESH,          OPT_EP,     OPT_OVERRIDES,      OPT_PLUGIN, OPT_NO_SP,
    OPT_LOSS_PARALLEL, OPT_STRICT, OPT_ALLOW_UNCOVERED};

static sw_status print_plan(sw_run *run, const sw_plan *plan, bool as_file, sw_error *err)
{
    sw_explain_options options_of_text = SW_EXPLAIN_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;

    if (as_file) {
        SW_TRY(sw_plan_json(plan, &text, &length, err));
    } else {
        options_of_text.all = sw_arguments_has(&run->arguments, OPT_ALL);
        SW_TRY(sw_plan_explain(plan, &options_of_text, &text, &length, err));
    }
    sw_buffer_append(&run->out, text, length);
    sw_text_free(text);
    return SW_OK;
}

/* A signal meanwhile waits until the file has its name. What is no file is written as it comes. */
static sw_status save_plan(const sw_plan *plan, const char *path, sw_error *err)
{
    if (sw_file_kind_of(path) != SW_FILE_OTHER)
        sw_interrupt_watch();
    sw_status status = sw_plan_save(plan, path, err);
    sw_interrupt_follow();
    return status;
}

static sw_status run_plan(sw_run *run, sw_error *err)
{
    sw_planning p SW_AUTO(sw_planning_clear) = {0};
    const sw_arguments *arguments = &run->arguments;
    const char *path = arguments->values[OPT_OUTPUT];
    bool is_printed = path != NULL && strcmp(path, "-") == 0;

    SW_TRY(sw_planning_make(&p, run, &rows, sw_model_open, err));
    if (path != NULL && !is_printed)
        SW_TRY(save_plan(p.plan, path, err));
    if (sw_arguments_has(arguments, OPT_QUIET) && !is_printed)
        return SW_OK;
    return print_plan(run, p.plan, is_printed || sw_arguments_has(arguments, OPT_JSON), err);
}

const sw_command sw_command_plan = {
    .name = "plan",
    .summary = "derive, check and explain the sharding plan of a model",
    .usage = "MODEL --mesh AXES [--ep N] [--overrides FILE] [-o FILE] [options]",
    .description =
        "Derive how every parameter and activation of MODEL is laid out on a mesh, check the plan, and\n"
        "explain it. MODEL is a Hugging Face folder, a config.json or a .safetensors file; weights are\n"
        "not read. All faults of a plan are reported together.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_plan,
};
