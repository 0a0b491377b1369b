/* The process: everything else is in program.c, where tests reach it. */
#include <mpi.h>
#include <stdio.h>

#include "cli-mpi/program.h"

int main(int argc, char **argv)
{
    int rank = 0;
    int provided = 0;

    /* Kernels have threads of their own, which never communicate. MPI ends the job itself when this fails. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int exit_status = sw_mpi_program_main(argc, argv, rank == 0 ? stdout : NULL, rank == 0 ? stderr : NULL);
    /* The launcher ends everybody as soon as one rank has left with a failure: rank 0 has spoken by then. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return exit_status;
}
