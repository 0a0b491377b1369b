/* `shardwright verify`: everything that is wrong with a checkpoint, in one run, and the proof when nothing
 * is. */
#include "base/status.h"
#include "cli/checkpoint.h"

enum { OPT_AGAINST, OPT_THREADS, OPT_QUIET, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_AGAINST] = { "against", 0, "MODEL", "a checkpoint that every tensor must equal" },
    [OPT_THREADS] = SW_OPTION_THREADS,
    [OPT_QUIET]   = SW_OPTION_QUIET_WORK,
    [OPT_JSON]    = SW_OPTION_JSON,
    { 0 },
};
// clang-format on

static const sw_work_rows rows = {SW_NO_ROW, SW_NO_ROW, OPT_THREADS, OPT_QUIET, OPT_JSON};

static sw_status run_verify(sw_run *run, sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    const char *path = arguments->operands[0];
    sw_work work;

    SW_TRY(sw_work_begin(&work, run, &rows, err));
    sw_status status =
        sw_checkpoint_verify(path, arguments->values[OPT_AGAINST], &work.options, &work.result, err);
    sw_work_end(&work, status);
    if (status == SW_OK)
        sw_work_put(&work, path, "read", work.result.bytes_read);
    return status;
}

const sw_command sw_command_verify = {
    .name = "verify",
    .summary = "check a checkpoint: complete, undamaged, copies equal",
    .usage = "IN [--against MODEL] [options]",
    .description =
        "Check a sharded folder, a Hugging Face folder or one .safetensors file: files against manifest or\n"
        "index, checksums, every element held by one owner, copies equal, the plan of this model. All that "
        "is\n"
        "wrong is said in one run. With --against every tensor is compared with that checkpoint too.\n"
        "A sharded folder without checksums, and otherwise right, is exit status 4.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_verify,
};
