/* `shardwright shard`: a model split by a plan, one file for each model-parallel coordinate. */
#include "cli/checkpoint.h"

static sw_status run_shard(sw_run *run, sw_error *err)
{
    /* A sharded folder has a plan too; the call itself refuses it, by what it is. */
    static const sw_planned planned = {sw_checkpoint_model, sw_checkpoint_shard};

    return sw_run_planned(run, &planned, err);
}

const sw_command sw_command_shard = {
    .name = "shard",
    .summary = "split a model by a plan, one file a model-parallel coordinate",
    .usage = "MODEL --mesh AXES|--plan FILE -o FOLDER [--replace] [options]",
    .description =
        "Split MODEL, a Hugging Face folder or one .safetensors file, into a sharded folder: a file for "
        "each\n"
        "coordinate of pp, tp and ep, each an ordinary .safetensors file with local shapes, and a manifest\n"
        "with the regions and checksums. FOLDER appears when all of it is on the disk.\n",
    .options = sw_planned_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_shard,
};
