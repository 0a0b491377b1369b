/*
 * The end of the job: a fault that only one rank can see, where the others already wait for it. One line on
 * standard error, then MPI_Abort(), which takes all ranks along. Nothing is agreed on inside a step, so this
 * is the only way out there; anywhere else failures are statuses.
 */
#ifndef SW_COMM_FATAL_H
#define SW_COMM_FATAL_H

#include <mpi.h>

/* Say "shardwright: rank 3: ..." and end the job with status 3. */
_Noreturn void sw_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The end where a call of this rank has failed and nobody else knows: `text`, whole lines, and status 3. Of
 * several ranks that fail so at one time the lowest speaks. Not called by the library, whose failures are
 * statuses: by the program that runs the job, before it frees what ranks have in common.
 */
_Noreturn void sw_fatal_alone(const char *text);

/* Wait for the end that another rank brings; should it not come within 5 s, end the job. */
_Noreturn void sw_fatal_await(void);

/* Give a communicator of ours a name and a handler that ends the job when MPI fails in it. */
void sw_fatal_watch(MPI_Comm comm, const char *name);

#endif
