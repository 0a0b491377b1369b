/* `shardwright diff`: how two checkpoints differ. The differences are the result, as those of diff(1) are. */
#include "base/status.h"
#include "cli/checkpoint.h"
#include "io/json_write.h"
#include "plan/explain_text.h"

enum { OPT_THREADS, OPT_QUIET, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_THREADS] = SW_OPTION_THREADS,
    [OPT_QUIET]   = { "quiet", 'q', NULL, "no progress and no differences, only whether there are any" },
    [OPT_JSON]    = { "json",  0,   NULL, "write the result as JSON, and differences as findings in JSON on standard error" },
    { 0 },
};
// clang-format on

static const sw_work_rows rows = {SW_NO_ROW, SW_NO_ROW, OPT_THREADS, OPT_QUIET, OPT_JSON};

static void drop_report(sw_report **report)
{
    sw_report_destroy(*report);
}

static void put_differences(const sw_report *report, sw_buffer *out)
{
    for (size_t i = 0; i < sw_report_count(report); i++) {
        const sw_finding *f = sw_report_finding(report, i);
        sw_text_line(out, "%s%s%s", f->fqn, *f->fqn == '\0' ? "" : ": ", f->what);
    }
}

static void put_json(const sw_work *work, char *const *paths, sw_buffer *out)
{
    const sw_checkpoint_result *result = &work->result;
    sw_json_writer w;

    sw_json_write_init(&w, out, false);
    sw_json_begin_object(&w);
    sw_json_key(&w, "first");
    sw_json_put_string(&w, paths[0]);
    sw_json_key(&w, "second");
    sw_json_put_string(&w, paths[1]);
    sw_json_key(&w, "tensors");
    sw_json_put_u64(&w, result->tensors);
    sw_json_key(&w, "different");
    sw_json_put_u64(&w, result->different);
    sw_json_key(&w, "bytes_read");
    sw_json_put_u64(&w, result->bytes_read);
    sw_json_end_object(&w);
    sw_buffer_putc(out, '\n');
}

static sw_status run_diff(sw_run *run, sw_error *err)
{
    sw_report *differences SW_AUTO(drop_report) = NULL;
    char *const *paths = run->arguments.operands;
    sw_work work;

    SW_TRY(sw_work_begin(&work, run, &rows, err));
    SW_TRY(sw_report_create(&differences, err));
    if (!sw_arguments_has(&run->arguments, OPT_JSON))
        work.options.report = differences;
    sw_status status = sw_checkpoint_diff(paths[0], paths[1], &work.options, &work.result, err);
    sw_work_end(&work, status);
    if (sw_arguments_has(&run->arguments, OPT_QUIET))
        return status;
    run->shows_out = true;
    if (sw_arguments_has(&run->arguments, OPT_JSON)) {
        if (work.result.files > 0) /* they were compared */
            put_json(&work, paths, &run->out);
        return status;
    }
    put_differences(differences, &run->out);
    if (status == SW_OK)
        sw_text_line(&run->out, "%s and %s hold the same", paths[0], paths[1]);
    return status;
}

const sw_command sw_command_diff = {
    .name = "diff",
    .summary = "compare two checkpoints, whatever their layouts",
    .usage = "A B [options]",
    .description =
        "Compare two checkpoints logically, a sharded folder or a Hugging Face folder each: names, dtypes,\n"
        "shapes and bytes. A line for each tensor that differs, with the first element that does. Exit\n"
        "status 1 when they differ.\n",
    .options = options,
    .min_operands = 2,
    .max_operands = 2,
    .run = run_diff,
};
