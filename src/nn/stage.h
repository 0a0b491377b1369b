/*
 * Stages: the places in a module where work may have to cross ranks. A stage is a function with a context;
 * the defaults are what one rank does, operations of src/tensor and nothing else. Whoever spreads a model
 * over ranks binds others. A stage gives a tensor of the step, or NULL when the step has failed.
 */
#ifndef SW_NN_STAGE_H
#define SW_NN_STAGE_H

#include "tensor/operations.h"

struct sw_parameter;

/* Queries [B, T, H, D] over keys [B, S, K, D] and values [B, S, K, E], to [B, T, H, E]. */
typedef struct sw_attend_stage {
    sw_tensor *(*run)(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                      const sw_tensor *v, const sw_attend_args *args);
    /* The same of queries that all parts of a cache have alike, over the keys of this part; NULL: there is
     * one part. */
    sw_tensor *(*run_alike)(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                            const sw_tensor *v, const sw_attend_args *args);
    void *context;
} sw_attend_stage;

/* What a router chose: experts I32 [N, k] by their global numbers, weights [N, k]. */
typedef struct sw_routing {
    const sw_tensor *experts;
    const sw_tensor *weights;
    const sw_tensor *logits; /* [N, n_experts] that it chose by; not for the transport */
    uint64_t n_experts;      /* of the whole model */
} sw_routing;

/*
 * Rows for the experts that are here, expert by expert: of `rows` [M, C] those of the e-th end at ends[e].
 * The rest is for the combination alone: `weights` [M] and `tokens` I32 [M] say what it does with a row, and
 * `plan` is whatever a transport of one's own keeps.
 */
typedef struct sw_dispatched {
    const sw_tensor *rows;
    const sw_tensor *ends; /* I32 [experts that are here] */
    const sw_tensor *weights;
    const sw_tensor *tokens;
    uint64_t n_tokens;
    const void *plan;
} sw_dispatched;

/* Tokens [N, C] to the experts and what the experts made, [M, C], back to [N, C], weighted and summed. */
typedef struct sw_transport_stage {
    sw_status (*dispatch)(void *context, sw_step *step, const sw_tensor *x, const sw_routing *routing,
                          sw_dispatched *out);
    sw_tensor *(*combine)(void *context, sw_step *step, const sw_dispatched *dispatched, const sw_tensor *y);
    /* Tokens [N, C] as the router and the experts get them; NULL: as they are. */
    sw_tensor *(*enter)(void *context, sw_step *step, const sw_tensor *x);
    void *context;
} sw_transport_stage;

/* Routers see this rank's tokens: others are elsewhere, and several ranks may see the same. NULL, one by one:
 * there is nothing to do. */
typedef struct sw_router_stage {
    /* Those places I32 [B, T] of a pass whose tokens routers see. */
    const sw_tensor *(*places)(void *context, sw_step *step, const sw_tensor *places);
    /* The rest is for the auxiliary loss. Counts of what these tokens chose, to those of all tokens. */
    sw_status (*count)(void *context, sw_step *step, double *counts, uint64_t n);
    /* Logits, whose gradient is to count on one of the ranks that see the same tokens. */
    const sw_tensor *(*once)(void *context, sw_step *step, const sw_tensor *logits);
    /* A sum over these tokens, to that over the tokens of ranks that have one loss together. */
    sw_tensor *(*sum)(void *context, sw_step *step, sw_tensor *sum);
    void *context;
} sw_router_stage;

/* Rows of a table by token. */
typedef struct sw_lookup_stage {
    sw_tensor *(*run)(void *context, sw_step *step, const sw_tensor *ids, const sw_tensor *weight);
    void *context;
} sw_lookup_stage;

/* Sums of squares of the part of a row that is here, to those of the whole row, for the norm of this weight.
 * NULL: the part is all. */
typedef struct sw_statistic_stage {
    sw_tensor *(*run)(void *context, sw_step *step, const sw_tensor *sums, const struct sw_parameter *weight);
    void *context;
} sw_statistic_stage;

/* Cross-entropy of logits [.., V] and targets [..], times a factor; a scalar. */
typedef struct sw_loss_stage {
    sw_tensor *(*run)(void *context, sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                      double factor);
    void *context;
} sw_loss_stage;

/* All of them; a module uses those that its class names. */
typedef struct sw_stages {
    sw_attend_stage attend;
    sw_transport_stage transport;
    sw_router_stage router; /* of the net */
    sw_lookup_stage lookup;
    sw_statistic_stage statistic;
    sw_loss_stage loss;
} sw_stages;

extern const sw_stages sw_stages_local; /* of one rank */

#endif
