/* The program `shardwright-mpi`. The list of its commands stands here and nowhere else. */
#include "cli-mpi/program.h"

#include <mpi.h>
#include <stddef.h>

#include "cli/program.h"
#include "comm/agree.h"

static const sw_command *const commands[] = {NULL};

static sw_status agree(sw_status mine, sw_error *err)
{
    return sw_agree_over(MPI_COMM_WORLD, mine, err);
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
