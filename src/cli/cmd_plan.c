/*
 * `shardwright plan`: a model and a mesh in, the explained plan out. The plan file (-o) appears under its
 * name only when complete; what is printed is for people, or with --json the file's bytes.
 */
#include "base/status.h"
#include "cli/command.h"
#include "cli/input.h"
#include "shardwright/plan.h"

enum {
    OPT_MESH,
    OPT_EP,
    OPT_NO_SP,
    OPT_LOSS_PARALLEL,
    OPT_OVERRIDES,
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
    [OPT_NO_SP]           = { "no-sp",           0,   NULL,   "activations between boundaries stay whole over tp" },
    [OPT_LOSS_PARALLEL]   = { "loss-parallel",   0,   NULL,   "logits stay cut along the vocabulary" },
    [OPT_OVERRIDES]       = SW_OPTION_OVERRIDES,
    [OPT_STRICT]          = { "strict",          0,   NULL,   "unused overrides and fallbacks are errors" },
    [OPT_ALLOW_UNCOVERED] = { "allow-uncovered", 0,   NULL,   "keep parameters whole that no rule places" },
    [OPT_OUTPUT]          = { "output",          'o', "FILE", "write the plan file" },
    [OPT_JSON]            = { "json",            0,   NULL,   "print the plan file's JSON, and errors as JSON" },
    [OPT_ALL]             = { "all",             'a', NULL,   "do not fold equal layers and experts" },
    [OPT_QUIET]           = { "quiet",           'q', NULL,   "print no plan, only what is wrong" },
    { 0 },
};
// clang-format on

/* What a command line makes, freed together: the plan borrows the model. */
typedef struct work {
    sw_model *model;
    sw_mesh *mesh;
    sw_overrides *overrides;
    sw_plan *plan;
} work;

static void drop_work(work *w)
{
    sw_plan_destroy(w->plan);
    sw_overrides_destroy(w->overrides);
    sw_mesh_destroy(w->mesh);
    sw_model_close(w->model);
}

static sw_status print_plan(sw_run *run, const sw_plan *plan, sw_error *err)
{
    sw_explain_options options_of_text = SW_EXPLAIN_OPTIONS_INIT;
    char *text = NULL;
    size_t length = 0;

    if (sw_arguments_has(&run->arguments, OPT_QUIET))
        return SW_OK;
    if (sw_arguments_has(&run->arguments, OPT_JSON)) {
        SW_TRY(sw_plan_json(plan, &text, &length, err));
    } else {
        options_of_text.all = sw_arguments_has(&run->arguments, OPT_ALL);
        SW_TRY(sw_plan_explain(plan, &options_of_text, &text, &length, err));
    }
    sw_buffer_append(&run->out, text, length);
    sw_text_free(text);
    return SW_OK;
}

static sw_status run_plan(sw_run *run, sw_error *err)
{
    work w SW_AUTO(drop_work) = {0};
    const sw_arguments *arguments = &run->arguments;
    sw_plan_options choices = SW_PLAN_OPTIONS_INIT;

    SW_TRY(sw_input_mesh(&w.mesh, arguments, OPT_MESH, OPT_EP, err));
    SW_TRY(sw_input_overrides(&w.overrides, arguments, OPT_OVERRIDES, err));
    SW_TRY(sw_model_open(&w.model, arguments->operands[0], err));
    choices.no_sequence_parallel = sw_arguments_has(arguments, OPT_NO_SP);
    choices.loss_parallel = sw_arguments_has(arguments, OPT_LOSS_PARALLEL);
    choices.strict = sw_arguments_has(arguments, OPT_STRICT);
    choices.allow_uncovered = sw_arguments_has(arguments, OPT_ALLOW_UNCOVERED);
    choices.overrides = w.overrides;
    choices.report = run->report;
    SW_TRY(sw_plan_create(&w.plan, w.model, w.mesh, &choices, err));
    if (sw_arguments_has(arguments, OPT_OUTPUT))
        SW_TRY(sw_plan_save(w.plan, arguments->values[OPT_OUTPUT], err));
    return print_plan(run, w.plan, err);
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
