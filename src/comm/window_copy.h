/*
 * The collectives of comm/collective.h where members of the group share a host: tensors lie in the memory of
 * each rank and are copied through the group's own window, a piece at a time. Twice as many copies as in
 * place, still none of them a message on one host; what others need of a piece goes between hosts once
 * (comm/hosts.h), and stands in a room there as if its member had written it.
 *
 * In each turn everybody writes in a third of the own room, then all meet. What was written is read before
 * the next meeting, and what was combined of it before the one after that. So whoever writes in a third
 * again, three turns later, has met everybody here since they read it.
 */
#ifndef SW_COMM_WINDOW_COPY_H
#define SW_COMM_WINDOW_COPY_H

#include "comm/collective.h"

/*
 * A window for these, or NULL: no two members share a host, there is no memory for it, or the group has one
 * rank. Collective over the group. To be given to sw_window_destroy().
 */
struct sw_window *sw_window_for_copies(const sw_group *group);

/* Does all_to_all go through the window? Only on one host: of what goes to another nothing is for two. */
bool sw_copies_across(const sw_group *group);

/* Over the group's window, which must be there. Hot: collective over the group. */
void sw_copy_gather(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out);
void sw_copy_across(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                    const sw_view *out);
void sw_copy_scatter(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                     const sw_view *out);
void sw_copy_reduce(const sw_group *group, uint64_t n_elems, sw_dtype dtype, sw_combine_op op, const char *in,
                    char *out); /* `out` may be `in` */

#endif
