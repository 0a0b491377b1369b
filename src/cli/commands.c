/* The program `shardwright`. The list of its commands stands here and nowhere else. */
#include "cli/command.h"
#include "cli/program.h"

static const sw_command *const commands[] = {
    &sw_command_plan,   &sw_command_explain, &sw_command_roles, &sw_command_mesh,
    &sw_command_init,   &sw_command_shard,   &sw_command_merge, &sw_command_reshard,
    &sw_command_verify, &sw_command_ls,      &sw_command_diff,  NULL,
};

static const sw_program program = {
    .name = "shardwright",
    .description = "Sharding plans for Hugging Face models: derived, explained, checked;\n"
                   "checkpoints split, merged, taken to other meshes, verified.\n",
    .more_statuses = ", 4 nothing is known to be wrong, and nothing proves it (verify)",
    .commands = commands,
};

int sw_program_main(int argc, char **argv, FILE *out, FILE *messages)
{
    return sw_program_run(&program, argc, argv, out, messages);
}
