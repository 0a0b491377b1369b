/* The commands on checkpoints, what they share (cli/checkpoint.h). */
#include "cli/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "cli/interrupt.h"
#include "io/json_write.h"
#include "plan/explain_text.h"
#include "plan/plan_data.h"
#include "plan/report.h"

enum { MOST_THREADS = 16 };

/* ---- a call ---- */

static bool has_row(const sw_run *run, uint32_t row)
{
    return row != SW_NO_ROW && sw_arguments_has(&run->arguments, row);
}

sw_status sw_work_begin(sw_work *work, sw_run *run, const sw_work_rows *rows, sw_error *err)
{
    *work = (sw_work){.run = run, .rows = rows};
    work->options = (sw_checkpoint_options)SW_CHECKPOINT_OPTIONS_INIT;
    if (rows->output != SW_NO_ROW)
        SW_TRY(sw_arguments_require(&run->arguments, rows->output, &work->out, err));
    if (work->out != NULL && strcmp(work->out, "-") == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "give a folder that is not there yet",
                       "option --output: a checkpoint is a folder, '-' is none");
    if (rows->threads != SW_NO_ROW)
        SW_TRY(
            sw_arguments_u32(&run->arguments, rows->threads, 1, MOST_THREADS, &work->options.threads, err));
    work->options.replace = has_row(run, rows->replace);
    work->options.report = run->report;
    work->options.on_progress = sw_meter_report;
    work->options.user = &work->meter;
    sw_meter_init(&work->meter, run->messages, has_row(run, rows->quiet));
    sw_interrupt_watch();
    return SW_OK;
}

void sw_work_end(sw_work *work, sw_status status)
{
    sw_meter_end(&work->meter);
    if (status == SW_OK && work->out != NULL)
        sw_interrupt_pass_over();
}

static void put_number(sw_json_writer *writer, const char *key, uint64_t value)
{
    sw_json_key(writer, key);
    sw_json_put_u64(writer, value);
}

static void put_json(const sw_checkpoint_result *result, sw_buffer *out)
{
    sw_json_writer writer;

    sw_json_write_init(&writer, out, false);
    sw_json_begin_object(&writer);
    put_number(&writer, "files", result->files);
    put_number(&writer, "elements", result->elements);
    put_number(&writer, "covered", result->covered);
    put_number(&writer, "replicas", result->replicas);
    put_number(&writer, "bytes_read", result->bytes_read);
    put_number(&writer, "bytes_written", result->bytes_written);
    sw_json_end_object(&writer);
    sw_buffer_putc(out, '\n');
}

void sw_work_put(const sw_work *work, const char *where, const char *done, uint64_t bytes)
{
    const sw_checkpoint_result *result = &work->result;
    sw_buffer *out = &work->run->out;
    char size[SW_TEXT_NUMBER];

    if (has_row(work->run, work->rows->quiet))
        return;
    if (has_row(work->run, work->rows->json)) {
        put_json(result, out);
        return;
    }
    sw_text_line(out, "%s: %" PRIu32 " file%s, %s %s", where, result->files, result->files == 1 ? "" : "s",
                 sw_text_bytes(size, (double)bytes), done);
    if (work->options.has_pick) {
        sw_text_line(out,
                     "covered %" PRIu64 " of %" PRIu64 " elements, each once; %" PRIu64
                     " replicas, where rank %" PRIu32 " has one it was taken without comparing",
                     result->covered, result->elements, result->replicas, work->options.pick);
    } else {
        sw_text_line(out,
                     "covered %" PRIu64 " of %" PRIu64 " elements, each once; %" PRIu64 " replicas equal",
                     result->covered, result->elements, result->replicas);
    }
}

/* ---- shard and reshard ---- */

enum {
    OPT_MESH,
    OPT_EP,
    OPT_PLAN,
    OPT_NO_SP,
    OPT_LOSS_PARALLEL,
    OPT_OVERRIDES,
    OPT_PLUGIN,
    OPT_STRICT,
    OPT_ALLOW_UNCOVERED,
    OPT_OUTPUT,
    OPT_REPLACE,
    OPT_THREADS,
    OPT_QUIET,
    OPT_JSON
};

// clang-format off
const sw_option sw_planned_options[] = {
    [OPT_MESH]            = SW_OPTION_MESH,
    [OPT_EP]              = SW_OPTION_EP,
    [OPT_PLAN]            = { "plan",            'p', "FILE", "a plan file, in the place of --mesh and what goes with it" },
    [OPT_NO_SP]           = SW_OPTION_NO_SP,
    [OPT_LOSS_PARALLEL]   = SW_OPTION_LOSS_PARALLEL,
    [OPT_OVERRIDES]       = SW_OPTION_OVERRIDES,
    [OPT_PLUGIN]          = SW_OPTION_PLUGIN,
    [OPT_STRICT]          = SW_OPTION_STRICT,
    [OPT_ALLOW_UNCOVERED] = SW_OPTION_ALLOW_UNCOVERED,
    [OPT_OUTPUT]          = SW_OPTION_OUTPUT_FOLDER,
    [OPT_REPLACE]         = SW_OPTION_REPLACE,
    [OPT_THREADS]         = SW_OPTION_THREADS,
    [OPT_QUIET]           = SW_OPTION_QUIET_WORK,
    [OPT_JSON]            = SW_OPTION_JSON,
    { 0 },
};
// clang-format on

static const sw_work_rows planned_rows = {OPT_OUTPUT, OPT_REPLACE, OPT_THREADS, OPT_QUIET, OPT_JSON};

static const sw_planning_rows plan_rows = {
    OPT_MESH,          OPT_EP,     OPT_OVERRIDES,      OPT_PLUGIN, OPT_NO_SP,
    OPT_LOSS_PARALLEL, OPT_STRICT, OPT_ALLOW_UNCOVERED};

/* A plan file has been planned already: whatever planning takes does not go with it. */
static sw_status check_line(const sw_arguments *arguments, sw_error *err)
{
    static const uint32_t rows[] = {OPT_MESH,      OPT_EP,     OPT_NO_SP,  OPT_LOSS_PARALLEL,
                                    OPT_OVERRIDES, OPT_PLUGIN, OPT_STRICT, OPT_ALLOW_UNCOVERED};

    for (size_t i = 0; i < SW_COUNT(rows); i++)
        SW_TRY(sw_arguments_exclude(arguments, OPT_PLAN, rows[i], err));
    if (!sw_arguments_has(arguments, OPT_PLAN) && !sw_arguments_has(arguments, OPT_MESH))
        return SW_FAIL(err, SW_E_ARGUMENT, "--mesh tp=4, or --plan FILE as `shardwright plan -o` writes it",
                       "neither --mesh AXES nor --plan FILE is given");
    return SW_OK;
}

/* Was the plan made from a config that does not stand there? What it rests on is not known then. */
static bool lacks_config(const sw_plan *plan, const sw_model *model)
{
    return sw_model_architecture(model)[0] == '\0' && sw_model_type(model)[0] == '\0' &&
           (plan->architecture[0] != '\0' || plan->model_type[0] != '\0');
}

/* A plan of a file may have been edited: it is checked as one that is made is. */
static sw_status take_plan(sw_planning *p, sw_run *run, const sw_planned *planned, sw_error *err)
{
    SW_TRY(sw_plan_load(&p->plan, run->arguments.values[OPT_PLAN], err));
    SW_TRY(planned->open(&p->model, run->arguments.operands[0], err));
    if (!lacks_config(p->plan, p->model))
        return sw_plan_check(p->plan, p->model, run->report, err);
    sw_report_add(run->report, SW_SEVERITY_WARNING, "plan_unchecked", "",
                  "put config.json beside the tensors to have it checked",
                  "%.300s: the plan is taken as it is: it was made with a config.json, and none stands here",
                  run->arguments.operands[0]);
    return SW_OK;
}

static sw_status make_plan(sw_planning *p, sw_run *run, const sw_planned *planned, sw_error *err)
{
    if (sw_arguments_has(&run->arguments, OPT_PLAN))
        return take_plan(p, run, planned, err);
    return sw_planning_make(p, run, &plan_rows, planned->open, err);
}

sw_status sw_run_planned(sw_run *run, const sw_planned *planned, sw_error *err)
{
    sw_planning p SW_AUTO(sw_planning_clear) = {0};
    sw_work work;

    SW_TRY(check_line(&run->arguments, err));
    SW_TRY(sw_work_begin(&work, run, &planned_rows, err));
    SW_TRY(make_plan(&p, run, planned, err));
    sw_status status =
        planned->run(run->arguments.operands[0], p.plan, work.out, &work.options, &work.result, err);
    sw_work_end(&work, status);
    if (status == SW_OK)
        sw_work_put(&work, work.out, "written", work.result.bytes_written);
    return status;
}
