/*
 * Windows: memory that all members of a group on one host see, with a room for each member and one in common.
 * Tensors that are made in a window are reduced where they lie: nobody sends anything, each member adds its
 * part of all rooms, and all read the same sum.
 *
 * Members on several hosts have a window on each, and what goes between hosts goes once (comm/hosts.h): the
 * rooms of a host are added there, its sums are sent, and what all shall read is put in common on every host.
 *
 * A tensor has the same place in the room of every member, and in common. What is read in common, or was
 * gathered there, stays until this rank's next call over the window: who writes there again has made another
 * call in between (two tensors taken in turn, or sw_window_meet()). Sums are made in the order of the
 * members, on several hosts host by host: the same bits on all of them and in every run; BF16 and F16 are
 * added in F32 and rounded once.
 */
#ifndef SW_COMM_WINDOW_H
#define SW_COMM_WINDOW_H

#include "comm/barrier.h"
#include "comm/collective.h"
#include "comm/hosts.h"

typedef struct sw_window {
    const sw_group *group;
    sw_hosts hosts;
    sw_barrier barrier; /* of the members here */
    MPI_Win shared;     /* MPI_WIN_NULL for one rank alone, whose memory it is */
    void *alone;
    char *rooms; /* one behind the other */
    uint32_t n_rooms;
    size_t room_bytes;
    char *common;
    const void **parts; /* of a sum, one a member */
    uint64_t n_turns;   /* of the copying forms (comm/window_copy.h) */
} sw_window;

/*
 * A window with `own_bytes` for each member and `common_bytes` for all; the same numbers on all of them. A
 * room is no memory before it is written. Collective over the group, which it borrows. SW_E_ARGUMENT: the
 * members gave different numbers; SW_E_LIMIT; SW_E_NO_MEMORY.
 */
sw_status sw_window_create(sw_window **out, const sw_group *group, size_t own_bytes, size_t common_bytes,
                           sw_error *err);

/* The same, and NULL where it fails. */
sw_window *sw_window_try(const sw_group *group, size_t own_bytes, size_t common_bytes);

/* The same, with rooms for the members of other hosts too, in which what comes from them is put. */
sw_window *sw_window_with_guests(const sw_group *group, size_t own_bytes);

void sw_window_destroy(sw_window *window); /* collective; NULL is fine */

/* Aligned to 64 bytes; of a member here, or of a guest. */
char *sw_window_room(const sw_window *window, uint32_t member);
char *sw_window_own(const sw_window *window);

/* ---- hot: collective over the group ---- */

/* All members on this host have come; what they wrote is seen. */
void sw_window_meet(sw_window *window);

/* P to R: `in` in the own room, `out` in common. `in` may be written again when it returns. */
void sw_window_all_reduce(sw_window *window, uint64_t n_elems, sw_dtype dtype, sw_combine_op op,
                          const void *in, void *out);

/* S(d) to R: every member has written its rows of `whole`, in common; now all may be read. */
void sw_window_all_gather(sw_window *window, const sw_along *along, sw_dtype dtype, void *whole);

/*
 * P to S(d): `in` in the own room, `out` anywhere but there. `in` may be written again when it returns.
 */
void sw_window_reduce_scatter(sw_window *window, const sw_along *along, sw_dtype dtype, const void *in,
                              void *out);

/*
 * The part of `n` elements that a member combines in all_reduce: whole cache lines, so that no two write
 * in one.
 */
sw_range sw_window_part(const sw_group *group, uint64_t n, uint32_t width, uint32_t member);

#endif
