/*
 * The ranks that train or evaluate a net together. Those of data parallelism take different rows of the same
 * batch, which every rank knows whole; what ranks do to one another inside of a net is not known here. One
 * rank alone is the same with nothing to do.
 */
#ifndef SW_TRAIN_RANKS_H
#define SW_TRAIN_RANKS_H

#include "nn/net.h"
#include "shardwright/comm.h"

typedef struct sw_ranks {
    sw_comm *comm;                  /* NULL: one rank alone */
    const struct sw_group *data;    /* that take different rows */
    const struct sw_group *context; /* that take different tokens of the same rows */
    const struct sw_group *tokens;  /* whose losses are summands: both */
    const struct sw_group *all;
    const struct sw_group *hidden; /* that share out the hidden states of their tokens; NULL: each has all */
} sw_ranks;

/* Of a net, by what was applied to it. */
sw_ranks sw_ranks_of(const sw_net *net);

/* How many ranks take different rows, and which of them this is. */
uint32_t sw_ranks_parts(const sw_ranks *ranks);
uint32_t sw_ranks_part(const sw_ranks *ranks);

/* ---- collective over all ranks ---- */

/* The sum of what the ranks with different tokens have: the same bits on all of them. */
double sw_ranks_sum(const sw_ranks *ranks, double mine);

/* Does every rank say so? */
bool sw_ranks_all(const sw_ranks *ranks, bool mine);

/* The lowest rank that says so; UINT32_MAX: none. */
uint32_t sw_ranks_first(const sw_ranks *ranks, bool mine);

/* The text of one rank for all. */
void sw_ranks_tell(const sw_ranks *ranks, uint32_t from, char *text, size_t capacity);

/* One outcome for all: that of the lowest rank that failed. Also for what all know to fail everywhere. */
sw_status sw_ranks_agree(const sw_ranks *ranks, sw_status mine, sw_error *err);

#endif
