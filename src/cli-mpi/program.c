/* The program `shardwright-mpi`. The list of its commands stands here and nowhere else. */
#include "cli-mpi/program.h"

#include <mpi.h>
#include <stddef.h>

#include "base/status.h"
#include "cli-mpi/commands.h"
#include "cli/program.h"
#include "comm/agree.h"

static const sw_command *const commands[] = {&sw_command_eval,
                                             &sw_command_generate,
                                             &sw_command_train,
                                             &sw_command_check,
                                             &sw_command_check_mesh,
                                             &sw_command_bench,
                                             NULL};

/* The account says whose it is; of the rank that speaks that needs no words. */
static sw_status agree(sw_status mine, sw_error *err)
{
    sw_status status = sw_agree_over(MPI_COMM_WORLD, mine, err);

    if (status != SW_OK && err->rank != 0)
        sw_error_context(err, "rank %d", (int)err->rank);
    return status;
}

static const sw_program program = {
    .name = "shardwright-mpi",
    .description = "Sharding plans at work on the ranks of an MPI job: mpirun -n RANKS shardwright-mpi ...\n",
    .more_statuses = "",
    .commands = commands,
    .agree = agree,
};

int sw_mpi_program_main(int argc, char **argv, FILE *out, FILE *messages)
{
    return sw_program_run(&program, argc, argv, out, messages);
}
