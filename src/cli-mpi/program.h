/* The program `shardwright-mpi` as a function, so that tests can run command lines inside a job. */
#ifndef SW_CLI_MPI_PROGRAM_H
#define SW_CLI_MPI_PROGRAM_H

#include <stdio.h>

/*
 * Run a command line on all ranks of the job; MPI is initialised. `out` and `messages` are for the rank that
 * speaks and NULL on the others (cli/program.h). The result is the exit status, the same on all ranks unless
 * writing fails. Collective over MPI_COMM_WORLD.
 */
int sw_mpi_program_main(int argc, char **argv, FILE *out, FILE *messages);

#endif
