/*
 * The hosts of a group, and what goes between them when the members of each share memory: a part of a tensor
 * travels once to every other host, not once to every member.
 *
 * Each member has an agent on every host: itself on its own; on another one the member of the same place
 * there, or, where fewer are, the one at its place modulo their number. What a member has for all is received
 * by its agents, and what the members of a host have for it is combined and sent by its agent there. So the
 * bytes are spread over the members of each host, whose numbers may differ.
 *
 * Combinations go host by host: the members of each in their order, then the hosts in the order of their
 * first members. BF16 and F16 are F32 in between and rounded once.
 */
#ifndef SW_COMM_HOSTS_H
#define SW_COMM_HOSTS_H

#include "comm/combine.h"
#include "comm/comm.h"
#include "comm/view.h"

/*
 * A member's part of a tensor that lies in the memory of each member here: `n` elements in stretches of
 * `length`, `step` elements from one to the next.
 */
typedef struct sw_host_part {
    size_t at; /* bytes before the first */
    uint64_t n;
    uint64_t length;
    uint64_t step;
} sw_host_part;

typedef struct sw_hosts {
    const sw_group *group;
    uint32_t n;
    uint32_t own;        /* this one; they count in the order of their first members */
    sw_group here;       /* the members on this host: this rank's place is its index */
    uint32_t *host_of;   /* of each member, */
    uint32_t *place_of;  /* and its place among those of its host */
    uint32_t *seat_of;   /* members here first, at their places, then the others */
    uint32_t *members;   /* host by host, */
    uint32_t *first;     /* and where each host begins; the end too */
    sw_view *rows;       /* of sw_hosts_spread(), one a member */
    sw_host_part *parts; /* of sw_hosts_combine(), one a member */
    const void **values; /* of a combination */
} sw_hosts;

/*
 * Find the hosts of a group, which is borrowed. Collective over it. SW_E_NO_MEMORY, on all members. To be
 * cleared in any case.
 */
sw_status sw_hosts_find(sw_hosts *out, const sw_group *group, sw_error *err);
void sw_hosts_clear(sw_hosts *hosts); /* collective; what is zero is fine */

/* ---- hot: collective over the group; with one host nothing is sent ---- */

/* `rows` of this rank go to all other hosts, and those of the members that it is the agent of come. */
void sw_hosts_spread(const sw_hosts *hosts);

/*
 * The part of this rank, combined over all members, in a row at `out`. `parts` are set for all members;
 * `rooms` has the tensor of each member here, which all of them may read.
 */
void sw_hosts_combine(const sw_hosts *hosts, const void *const *rooms, sw_dtype dtype, sw_combine_op op,
                      void *out);

/* Local: combine `n` elements of all members, which are here, in the same order. */
void sw_hosts_combine_here(const sw_hosts *hosts, const void *const *values, uint64_t n, sw_dtype dtype,
                           sw_combine_op op, void *out);

#endif
