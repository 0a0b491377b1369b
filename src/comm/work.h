/*
 * What the collectives over a group need besides their arguments, made with the group: no collective
 * allocates. Staging is bounded, so large tensors that are not one stretch of memory go in rounds.
 */
#ifndef SW_COMM_WORK_H
#define SW_COMM_WORK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm/call.h"
#include "comm/view.h"

enum {
    SW_STAGE_BYTES = 4 << 20, /* all lanes together, what is sent and what is received */
    SW_SHORT_BYTES = 64 << 10 /* of a rank: up to here parts go in slots (comm/slots.h) */
};

/* What goes to one member of the group and what comes from it. */
typedef struct sw_lane {
    sw_view sent; /* joined views, in the tensors of the caller */
    sw_view received;
    uint64_t n_sent; /* elements */
    uint64_t n_received;
} sw_lane;

/* One communication at a time. */
typedef struct sw_work {
    char *stage; /* of the sw_comm, shared by its groups */
    size_t stage_bytes;
    size_t short_bytes;       /* SW_SHORT_BYTES; the same on all ranks, as everything of the stage */
    uint64_t most_elems;      /* of one message: MPI counts in int */
    struct sw_window *window; /* of the copying forms (comm/window_copy.h); NULL: by MPI */
    sw_lane *lanes;           /* one a member, as everything here */
    const void **parts;       /* of a combination */
    MPI_Request *requests;    /* two a member */
    int *counts;              /* two a member: counts, and places */
    sw_call *calls;
    int host;            /* tests pretend that ranks of one host with other numbers here are on several */
    bool is_crowded;     /* more ranks of the job on this host than it has cores */
    bool compares_calls; /* debug builds */
    uint32_t patience;   /* seconds until a rank that does not come is missed */
} sw_work;

/* For a group of `size` ranks. The stage is borrowed. SW_E_NO_MEMORY. */
sw_status sw_work_create(sw_work **out, uint32_t size, char *stage, size_t stage_bytes, sw_error *err);
void sw_work_destroy(sw_work *work); /* NULL is fine */

#endif
