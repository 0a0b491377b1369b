/* `shardwright reshard`: from one mesh to another, without a full copy in between. */
#include "cli/checkpoint.h"

static sw_status run_reshard(sw_run *run, sw_error *err)
{
    static const sw_planned planned = {sw_checkpoint_model, sw_checkpoint_reshard};

    return sw_run_planned(run, &planned, err);
}

const sw_command sw_command_reshard = {
    .name = "reshard",
    .summary = "take a sharded folder to another mesh",
    .usage = "IN --mesh AXES|--plan FILE -o FOLDER [--replace] [options]",
    .description = "Write the sharded folder IN anew for another mesh, straight from file to file. The plan "
                   "is made from\n"
                   "the tensors of IN and from the config.json that it carries. Optimizer state goes with "
                   "its parameters.\n",
    .options = sw_planned_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_reshard,
};
