/* The program as a function, so that tests can run command lines without a process. */
#ifndef SW_CLI_PROGRAM_H
#define SW_CLI_PROGRAM_H

#include <stdio.h>

/*
 * Run a command line. Results go to `out`, messages to `messages`; the result is the exit status: 0 done, 1
 * the input or the plan is wrong, 2 the command line is wrong, 3 the system failed. Not for several threads
 * at once.
 */
int sw_program_main(int argc, char **argv, FILE *out, FILE *messages);

#endif
