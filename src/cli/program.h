/* A program as a function, so that tests can run command lines without a process. */
#ifndef SW_CLI_PROGRAM_H
#define SW_CLI_PROGRAM_H

#include <stdio.h>

#include "cli/command.h"

typedef struct sw_program {
    const char *name;                  /* "shardwright" */
    const char *description;           /* lines for --help, each ended */
    const char *more_statuses;         /* what --help adds to the exit statuses; "": nothing */
    const sw_command *const *commands; /* up to 32, then NULL */
    /* With several ranks: what all of them make of their outcomes, of the line and of the command; each rank
     * calls it for both. NULL: one rank. */
    sw_status (*agree)(sw_status mine, sw_error *err);
} sw_program;

/*
 * Run a command line of `program`. Results go to `out`, messages to `messages`; NULL keeps them (ranks that
 * do not speak). The result is the exit status: 0 done, 1 the input or the plan is wrong, 2 the command line
 * is wrong, 3 the system failed. Not for several threads at once.
 */
int sw_program_run(const sw_program *program, int argc, char **argv, FILE *out, FILE *messages);

/* What is said of a run that ends so, as text or as JSON. */
void sw_program_say(const sw_run *run, const sw_error *err, sw_buffer *out);

/* The program `shardwright`. */
int sw_program_main(int argc, char **argv, FILE *out, FILE *messages);

#endif
