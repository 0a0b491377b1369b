/*
 * Tokens on their way to experts that are spread over ranks, and back. Every rank owns the experts of its
 * chunk, in order (S(0) over the group). Two modes:
 *
 *     TP-extend-EP   ranks have tokens of their own: rows go to the owners of their experts, what those make
 * of them comes back ep axis        all ranks have the same tokens: each takes the rows of its own experts,
 * results are summed
 *
 * Nothing is dropped: experts may have no rows or all of them, ranks may have no tokens. A row is an expert's
 * view of a token; of k choices a token has up to k.
 *
 * Gradients: of tokens and weights whole where ranks have tokens of their own. With an ep axis each rank has
 * summands of both, since it has seen its own experts only: sw_sum_node(SW_SUM_BACKWARD) where the tokens
 * enter, before the router, sums those of tokens; the plan's grad_sum those of the router.
 *
 * Memory is the step's: at most as many rows as all ranks have choices; it grows when more rows come than in
 * any step before, and is kept.
 *
 * Drawings: docs/reference/expert-parallel.md. All are collective over the group.
 */
#ifndef SW_PARALLEL_EXPERTS_H
#define SW_PARALLEL_EXPERTS_H

#include "comm/comm.h"
#include "tensor/step.h"

typedef struct sw_expert_ranks {
    const sw_group *group;
    sw_ep_mode mode;
    uint64_t n_experts; /* of the whole model */
} sw_expert_ranks;

/* Experts of this rank; none on the last ranks when there are few, all in mode none. */
sw_range sw_experts_own(const sw_expert_ranks *ranks);

/* Where everything goes for one choice of experts: made by dispatch, for one combine. */
typedef struct sw_expert_route {
    sw_expert_ranks ranks;
    sw_range own;
    const sw_tensor *ends; /* I32 [own experts]: where the rows of each end */
    uint64_t n_tokens;
    uint64_t n_choices; /* of a token */
    uint64_t n_rows;    /* of own experts */
    uint64_t n_sent;
    int32_t *choices; /* [n_sent]: which of the choices of all tokens a row is */
    int32_t *tokens;  /* [n_sent] */
    int32_t *place;   /* [n_rows], parallel/expert_route.h */
    int32_t *back;
    uint64_t *to; /* [ranks]: rows that go to a rank and come from it */
    uint64_t *from;
    const sw_tensor_layout *layout; /* of the tokens */
} sw_expert_route;

/*
 * Rows [M, C] of the experts of this rank, one expert behind the other. x [N, C]; experts I32 [N, k],
 * negative: no choice (padding). The route is in memory of the step.
 */
sw_tensor *sw_experts_dispatch(sw_step *step, const sw_expert_ranks *ranks, const sw_tensor *x,
                               const sw_tensor *experts, const sw_expert_route **route);

/* What the experts made of the rows, [M, C'], weighted by [N, k] and summed: [N, C'], like the tokens. */
sw_tensor *sw_experts_combine(sw_step *step, const sw_expert_route *route, const sw_tensor *y,
                              const sw_tensor *weights);

#endif
