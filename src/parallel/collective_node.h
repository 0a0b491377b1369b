/*
 * Collectives over whole tensors as nodes of the tape. Tensors need not be dense. Outputs have no layout:
 * whoever makes such a node inside a local region knows where its result lies. All are collective over the
 * group, whose ranks bring tensors of one shape.
 */
#ifndef SW_PARALLEL_COLLECTIVE_NODE_H
#define SW_PARALLEL_COLLECTIVE_NODE_H

#include "comm/comm.h"
#include "tensor/step.h"

/*
 * Dim `dim` of all ranks, one rank behind the other. Every rank uses the whole for work of its own, so the
 * backward adds up what they found and scatters it.
 */
sw_tensor *sw_gather_node(sw_step *step, const sw_group *group, const sw_tensor *x, uint32_t dim);

/*
 * Sums over the ranks. Forward: every rank has a summand, all get the sum, and use it alike. Backward only:
 * the tensor is whole, and ranks use it for different things, so their gradients are summands. Both: summands
 * whose sum is used for different things (a norm over a width that is cut).
 */
typedef enum sw_sum_way {
    SW_SUM_FORWARD = 1, /* P to R */
    SW_SUM_BACKWARD,    /* R into a part of the work */
    SW_SUM_BOTH
} sw_sum_way;

sw_tensor *sw_sum_node(sw_step *step, const sw_group *group, const sw_tensor *x, sw_sum_way way);

/*
 * The tensor as it is; its gradient stays on the first rank, and is zeros on the others. For what all ranks
 * compute alike from a tensor of which they otherwise have summands of the gradient (the auxiliary loss of a
 * router that each uses for its own experts), so that it counts once. No traffic.
 */
sw_tensor *sw_once_node(sw_step *step, const sw_group *group, const sw_tensor *x);

/*
 * Heads are dealt out and tokens put together: [B, T, H, D] of each rank's tokens to [B, T ranks, H repeats /
 * ranks, D]. Each head is there `repeats` times first, so that heads of which there are fewer than ranks are
 * enough; gradients of the copies are summed. Ranks divide the heads that there are then.
 */
sw_tensor *sw_heads_node(sw_step *step, const sw_group *group, const sw_tensor *x, uint32_t repeats);

/* And back: [B, T ranks, H / ranks, D] to [B, T, H, D]. */
sw_tensor *sw_tokens_node(sw_step *step, const sw_group *group, const sw_tensor *x);

#endif
