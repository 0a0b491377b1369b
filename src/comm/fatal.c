/* The end of the job (comm/fatal.h). The line is written by one call, so that those of several ranks do not
 * mix. */
#include "comm/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FATAL_EXIT = 3, AWAIT_SECONDS = 5, LINE_BYTES = 1024, ALONE_TAG = 4 };

/* A launcher that is told to end a job may drop what it has not yet read of a rank's output (MPICH's does).
 */
enum { READ_NANOSECONDS = 200 * 1000 * 1000 };

/* How long a rank that has failed listens for a lower one that has too. */
enum { LISTENED_TIMES = 30, LISTEN_NANOSECONDS = 10 * 1000 * 1000 };

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

/* Tell the higher ranks that this one has failed; a send of nothing does not wait for its receiver. */
static void tell_higher(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int rank = 0;
    int ranks = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int higher = rank + 1; higher < ranks; higher++) {
        MPI_Isend(NULL, 0, MPI_BYTE, higher, ALONE_TAG, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}

void sw_fatal_alone(const char *text)
{
    int has_failed = 0; /* a lower rank */

    tell_higher();
    for (int i = 0; i < LISTENED_TIMES && !has_failed; i++) {
        wait_for((struct timespec){0, LISTEN_NANOSECONDS});
        MPI_Iprobe(MPI_ANY_SOURCE, ALONE_TAG, MPI_COMM_WORLD, &has_failed, MPI_STATUS_IGNORE);
    }
    if (has_failed)
        sw_fatal_await();
    say_and_end(text, strlen(text));
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
