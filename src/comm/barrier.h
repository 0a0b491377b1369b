/*
 * A barrier in memory that the members of a group share: each has a line of its own, in which it counts how
 * often it has arrived. Whoever waits looks for a while, then lets others run; with more ranks than cores
 * soon, since the one waited for may need the core. Meanwhile MPI works on, since others may wait for
 * messages of this rank, and a member whose process is gone is noticed.
 */
#ifndef SW_COMM_BARRIER_H
#define SW_COMM_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/comm.h"

typedef struct sw_barrier_line {
    _Alignas(64) _Atomic uint64_t n_arrived;
    int64_t process;
} sw_barrier_line;

typedef struct sw_barrier {
    const sw_group *group;
    sw_barrier_line *lines; /* one a member, shared */
    uint64_t n_arrived;     /* of this rank */
    uint64_t n_looks;       /* before others are let run */
    bool sees_processes;    /* the members' process numbers mean something here: one name space */
} sw_barrier;

/* Begin with lines that nobody has written before. Collective over the group. */
void sw_barrier_begin(sw_barrier *barrier, const sw_group *group, sw_barrier_line *lines);

/*
 * Wait until all members have come. What they wrote before is seen behind it. Hot; ends the job when a member
 * is gone.
 */
void sw_barrier_pass(sw_barrier *barrier);

/* The same in two steps, for what can be done between them; one wait for each arrival. */
void sw_barrier_arrive(sw_barrier *barrier);
void sw_barrier_wait(sw_barrier *barrier);

#endif
