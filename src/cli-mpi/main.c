/* The process: everything else is in program.c, where tests reach it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/disk.h"
#include "base/status.h"
#include "cli-mpi/program.h"
#include "cli/interrupt.h"
#include "comm/call.h"

/* Faults for tests of failing ranks, named by the environment: of a collective (comm/call.h), or of the disk
 * where a rank has it (base/disk.h). */
static sw_status set_fault(FILE *messages)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread is there yet
    const char *fault = getenv("SW_FAULT");
    sw_error err = {0};
    sw_status status = sw_call_fault_set(fault, &err);

    if (status != SW_OK && sw_disk_fault_set(fault, NULL) == SW_OK)
        return SW_OK;
    if (status != SW_OK && messages != NULL)
        (void)fprintf(messages, "shardwright: SW_FAULT: %s\nhelp: %s\n", err.what, err.help);
    return status;
}

int main(int argc, char **argv)
{
    int rank = 0;
    int provided = 0;
    char whose[32];

    /* Kernels have threads of their own, which never communicate. MPI ends the job itself when this fails. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *out = rank == 0 ? stdout : NULL;
    FILE *messages = rank == 0 ? stderr : NULL;
    sw_interrupt_ignore_file_limit();
    (void)snprintf(whose, sizeof whose, "rank %d: ", rank);
    sw_interrupt_say_lost_memory(whose);
    int status = (int)set_fault(messages);
    MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    int exit_status =
        status == SW_OK ? sw_mpi_program_main(argc, argv, out, messages) : sw_status_exit((sw_status)status);
    /* The launcher ends everybody as soon as one rank has left with a failure: rank 0 has spoken by then. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return exit_status;
}
