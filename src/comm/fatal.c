/* The end of the job (comm/fatal.h). The line is written by one call, so that those of several ranks do not
 * mix. */
#include "comm/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FATAL_EXIT = 3, AWAIT_SECONDS = 5, LINE_BYTES = 1024 };

/* A launcher that is told to end a job may drop what it has not yet read of a rank's output (MPICH's does).
 */
enum { READ_NANOSECONDS = 200 * 1000 * 1000 };

static void wait_for(struct timespec left)
{
    while (nanosleep(&left, &left) != 0) {
    }
}

_Noreturn static void end_job(void)
{
    MPI_Abort(MPI_COMM_WORLD, FATAL_EXIT);
    _Exit(FATAL_EXIT); /* should it return */
}

_Noreturn static void say_and_end(const char *line, size_t length)
{
    ssize_t n_written = write(STDERR_FILENO, line, length);
    (void)n_written; /* nobody is left to tell */
    wait_for((struct timespec){0, READ_NANOSECONDS});
    end_job();
}

void sw_fatal(const char *format, ...)
{
    char line[LINE_BYTES];
    int rank = 0;
    va_list arguments;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int n_before = snprintf(line, sizeof line, "shardwright: rank %d: ", rank);
    va_start(arguments, format);
    (void)vsnprintf(line + n_before, sizeof line - 1 - (size_t)n_before, format, arguments);
    va_end(arguments);
    size_t length = strlen(line);
    line[length++] = '\n';
    say_and_end(line, length);
}

void sw_fatal_await(void)
{
    wait_for((struct timespec){AWAIT_SECONDS, 0});
    end_job();
}

static void end_on_mpi_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;

    MPI_Error_string(*code, text, &length);
    MPI_Comm_get_name(*comm, name, &length);
    sw_fatal("communication over %s failed: %s", name, text);
}

void sw_fatal_watch(MPI_Comm comm, const char *name)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

    MPI_Comm_create_errhandler(end_on_mpi_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler); /* the communicator keeps it */
    MPI_Comm_set_name(comm, name);
}
