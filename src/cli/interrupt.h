/*
 * Ctrl-C during a long work: the work is asked to stop, so that it takes away what it has written, and then
 * the process ends by the signal after all. A second one ends it at once. And signals that are failures.
 */
#ifndef SW_CLI_INTERRUPT_H
#define SW_CLI_INTERRUPT_H

#include <stdbool.h>

/* A file that passes the process's limit of its size is a write that fails, not the end. */
void sw_interrupt_ignore_file_limit(void);

/*
 * Memory of a mapped file that cannot be had (SIGBUS: the file was cut short, its disk fails) ends the
 * process with status 3 and two lines, "shardwright: " and `whose`, such as "rank 3: ", before the first.
 */
void sw_interrupt_say_lost_memory(const char *whose);

/* From now on SIGINT, SIGTERM and SIGHUP are noted; what was ignored stays ignored. */
void sw_interrupt_watch(void);

/* Was there one? */
bool sw_interrupt_is_asked(void);

/* The output is published: a first signal, be it there already or not, changes nothing any more. */
void sw_interrupt_pass_over(void);

/* The work is done: signals end the process as before, and the one that was noted does now, so that its
 * parent sees why. */
void sw_interrupt_follow(void);

#endif
