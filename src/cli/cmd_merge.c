/* `shardwright merge`: a sharded folder back to a Hugging Face folder. */
#include "base/status.h"
#include "cli/checkpoint.h"

enum { OPT_OUTPUT, OPT_MAX_SHARD_SIZE, OPT_PICK, OPT_REPLACE, OPT_THREADS, OPT_QUIET, OPT_JSON };

// clang-format off
static const sw_option options[] = {
    [OPT_OUTPUT]         = SW_OPTION_OUTPUT_FOLDER,
    [OPT_MAX_SHARD_SIZE] = { "max-shard-size", 0, "SIZE", "largest file, such as 500MB or 2GiB; 5GB when not given" },
    [OPT_PICK]           = { "pick",           0, "RANK", "take the copies of that tp rank, without comparing copies" },
    [OPT_REPLACE]        = SW_OPTION_REPLACE,
    [OPT_THREADS]        = SW_OPTION_THREADS,
    [OPT_QUIET]          = SW_OPTION_QUIET_WORK,
    [OPT_JSON]           = SW_OPTION_JSON,
    { 0 },
};
// clang-format on

static const sw_work_rows rows = {OPT_OUTPUT, OPT_REPLACE, OPT_THREADS, OPT_QUIET, OPT_JSON};

static sw_status run_merge(sw_run *run, sw_error *err)
{
    const sw_arguments *arguments = &run->arguments;
    sw_work work;

    SW_TRY(sw_work_begin(&work, run, &rows, err));
    SW_TRY(sw_arguments_bytes(arguments, OPT_MAX_SHARD_SIZE, &work.options.max_shard_bytes, err));
    SW_TRY(sw_arguments_u32(arguments, OPT_PICK, 0, INT32_MAX, &work.options.pick, err));
    work.options.has_pick = sw_arguments_has(arguments, OPT_PICK);
    sw_status status =
        sw_checkpoint_merge(arguments->operands[0], work.out, &work.options, &work.result, err);
    sw_work_end(&work, status);
    if (status == SW_OK)
        sw_work_put(&work, work.out, "written", work.result.bytes_written);
    return status;
}

const sw_command sw_command_merge = {
    .name = "merge",
    .summary = "put a sharded folder together as a Hugging Face folder",
    .usage = "IN -o FOLDER [--max-shard-size SIZE] [--pick RANK] [--replace] [options]",
    .description = "Put the sharded folder IN together again: a Hugging Face folder with an index, every "
                   "tensor byte for\n"
                   "byte as it was. Copies of the same piece must be equal; --pick takes those of one rank "
                   "on purpose.\n",
    .options = options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_merge,
};
