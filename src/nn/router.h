/*
 * Routers: from hidden states to the experts of each token and their weights. What a config says of it, and
 * the choice by it.
 */
#ifndef SW_NN_ROUTER_H
#define SW_NN_ROUTER_H

#include "model/config.h"
#include "nn/stage.h"

/* What experts are weighted by. */
typedef enum sw_router_scores {
    SW_SCORES_SOFTMAX = 0, /* over all experts */
    SW_SCORES_SIGMOID,
    SW_SCORES_OF_CHOSEN, /* softmax over those that were chosen, by their logits */
} sw_router_scores;

typedef struct sw_router_settings {
    uint64_t n_experts; /* of the whole model; 0: none */
    uint64_t per_token;
    sw_router_scores scores;
    bool normalises;   /* weights of a token sum to 1, before the scale */
    double scale;      /* of the weights */
    uint64_t n_groups; /* as kernel/rows.h has them; 0: none */
    uint64_t n_kept;
    uint64_t group_best;
    double loss; /* factor of the auxiliary loss; 0: the config does not add it */
} sw_router_settings;

/* SW_E_FORMAT: what cannot be run, by key and value. */
sw_status sw_router_settings_read(sw_router_settings *out, const sw_config *config, sw_error *err);

/* Parameters of a router; bias and correction may be NULL. */
typedef struct sw_router {
    const sw_router_settings *settings;
    const sw_tensor *weight;     /* [experts, C] */
    const sw_tensor *bias;       /* [experts] */
    const sw_tensor *correction; /* [experts], added to the scores for the choice alone */
} sw_router;

/* The choice for x [N, C]. Failures are the step's. */
sw_routing sw_route(const sw_router *router, sw_step *step, const sw_tensor *x);

/*
 * Places of the tokens that routers see, of those I32 [B, T] of a pass: negative where there is no token but
 * padding. NULL: `places` is NULL, there is a token everywhere.
 */
const sw_tensor *sw_router_places(const sw_router_stage *stage, sw_step *step, const sw_tensor *places);

/* Choices I32 [N, k] where there are tokens; where there is none they are -1. */
const sw_tensor *sw_router_choices(sw_step *step, const sw_tensor *experts, const sw_tensor *places);

/* What the routers of a pass said. */
typedef struct sw_router_trace {
    const sw_tensor *last;    /* logits [N, experts] of the router that ran last; NULL: none has */
    const sw_tensor **logits; /* a layer each [N, experts]; NULL: it has no router */
    uint32_t n_layers;
    const sw_tensor *places; /* of the pass, as sw_router_places() takes them */
} sw_router_trace;

/* A trace of `n_layers`, in memory of the step; NULL when the step has failed. */
sw_router_trace *sw_router_trace_begin(sw_step *step, uint32_t n_layers);

/*
 * `factor` times the auxiliary loss that keeps experts equally busy: their number times the sum over them of
 * the share of tokens that chose one and the mean of its probability, over the tokens of all layers. As many
 * as are chosen a token when all are equally busy. Padding is no token. A scalar; over ranks whose
 * tokens the stage counts, a summand of it.
 */
sw_tensor *sw_router_loss(const sw_router_settings *settings, const sw_router_stage *stage, sw_step *step,
                          const sw_router_trace *trace, double factor);

#endif
