/* Ranks that work on one net (train/ranks.h). */
#include "train/ranks.h"

#include "apply/applied.h"
#include "comm/collective.h"

sw_ranks sw_ranks_of(const sw_net *net)
{
    const sw_applied *applied = sw_applied_of(net);

    if (applied == NULL)
        return (sw_ranks){0};
    sw_comm *comm = applied->active.comm;
    return (sw_ranks){.comm = comm,
                      .data = sw_comm_group(comm, SW_GROUP_DP),
                      .context = sw_comm_group(comm, SW_GROUP_CP),
                      .tokens = sw_comm_group(comm, SW_GROUP_DP_CP),
                      .all = sw_comm_group(comm, SW_GROUP_WORLD),
                      .hidden = applied->plan->sequence_parallel ? sw_comm_group(comm, SW_GROUP_TP) : NULL};
}

uint32_t sw_ranks_parts(const sw_ranks *ranks)
{
    return ranks->comm == NULL ? 1 : ranks->data->size;
}

uint32_t sw_ranks_part(const sw_ranks *ranks)
{
    return ranks->comm == NULL ? 0 : ranks->data->index;
}

double sw_ranks_sum(const sw_ranks *ranks, double mine)
{
    if (ranks->comm != NULL)
        sw_all_reduce(ranks->tokens, 1, SW_DTYPE_F64, &mine, &mine);
    return mine;
}

bool sw_ranks_all(const sw_ranks *ranks, bool mine)
{
    return sw_ranks_first(ranks, !mine) == UINT32_MAX;
}

uint32_t sw_ranks_first(const sw_ranks *ranks, bool mine)
{
    if (ranks->comm == NULL)
        return mine ? 0 : UINT32_MAX;
    double n = ranks->all->size;
    double bid = mine ? n - (double)ranks->all->index : 0.0; /* the lowest rank bids the most */
    sw_all_reduce_max(ranks->all, 1, SW_DTYPE_F64, &bid, &bid);
    return bid > 0.0 ? (uint32_t)(n - bid) : UINT32_MAX;
}

void sw_ranks_tell(const sw_ranks *ranks, uint32_t from, char *text, size_t capacity)
{
    if (ranks->comm != NULL)
        sw_broadcast(ranks->all, from, capacity, SW_DTYPE_U8, text);
}

sw_status sw_ranks_agree(const sw_ranks *ranks, sw_status mine, sw_error *err)
{
    return ranks->comm == NULL ? mine : sw_comm_agree(ranks->comm, mine, err);
}
