/* What stages do on one rank: operations, and nothing that crosses (nn/stage.h). */
#include "nn/stage.h"

#include <string.h>

#include "base/status.h"

static sw_tensor *attend(void *context, sw_step *step, const sw_tensor *q, const sw_tensor *k,
                         const sw_tensor *v, const sw_attend_args *args)
{
    (void)context;
    return sw_op_attention(step, q, k, v, args);
}

static sw_tensor *look_up(void *context, sw_step *step, const sw_tensor *ids, const sw_tensor *weight)
{
    (void)context;
    return sw_op_embedding(step, ids, weight);
}

static sw_tensor *lose(void *context, sw_step *step, const sw_tensor *logits, const sw_tensor *targets,
                       double factor)
{
    (void)context;
    return sw_op_cross_entropy(step, logits, targets, factor);
}

/* ---- experts ---- */

/* Where the choices of a router go when they are put in the order of the experts. */
typedef struct order {
    uint64_t *counts; /* of each expert */
    int32_t *choices; /* of the rows: which of the N * k choices it is */
    int32_t *tokens;  /* of the rows */
} order;

static sw_status take_order(sw_step *step, uint64_t n_experts, const sw_tensor *tokens,
                            const sw_tensor *choices, order *out)
{
    sw_error err = {0};

    *out = (order){.counts = sw_stack_take(sw_step_stack(step), (size_t)n_experts * sizeof *out->counts),
                   .choices = sw_tensor_data(choices),
                   .tokens = sw_tensor_data(tokens)};
    if (out->counts != NULL)
        return SW_OK;
    return sw_step_fail(step, SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for a router's choices"), &err);
}

/* By counting: the rows of an expert are in the order of their tokens. */
static void put_in_order(const order *o, const int32_t *experts, uint64_t n_choices, uint64_t per_token,
                         uint64_t n_experts)
{
    uint64_t at = 0;

    memset(o->counts, 0, (size_t)n_experts * sizeof *o->counts);
    for (uint64_t i = 0; i < n_choices; i++)
        o->counts[experts[i]]++;
    for (uint64_t e = 0; e < n_experts; e++) {
        uint64_t n = o->counts[e];
        o->counts[e] = at;
        at += n;
    }
    for (uint64_t i = 0; i < n_choices; i++) {
        uint64_t row = o->counts[experts[i]]++;
        o->choices[row] = (int32_t)i;
        o->tokens[row] = (int32_t)(i / per_token);
    }
    for (uint64_t e = n_experts; e-- > 1;) /* ends to counts */
        o->counts[e] -= o->counts[e - 1];
}

static sw_status dispatch(void *context, sw_step *step, const sw_tensor *x, const sw_routing *routing,
                          sw_dispatched *out)
{
    uint64_t n_tokens = x == NULL ? 0 : x->dims[0];
    uint64_t per_token = routing->experts == NULL ? 0 : routing->experts->dims[1];
    uint64_t n_rows = n_tokens * per_token;
    sw_tensor *tokens = sw_step_tensor(step, SW_DTYPE_I32, 1, &n_rows);
    sw_tensor *choices = sw_step_tensor(step, SW_DTYPE_I32, 1, &n_rows);
    order o = {0};

    (void)context;
    SW_TRY(sw_step_status(step, NULL));
    SW_TRY(take_order(step, routing->n_experts, tokens, choices, &o));
    put_in_order(&o, sw_tensor_data(routing->experts), n_rows, per_token, routing->n_experts);
    const sw_tensor *weights = sw_view_merge(step, routing->weights, 0);
    weights = sw_op_gather_rows(step, sw_view_split(step, weights, 0, 1), choices);
    *out = (sw_dispatched){.rows = sw_op_gather_rows(step, x, tokens),
                           .counts = o.counts,
                           .n_experts = routing->n_experts,
                           .weights = sw_view_merge(step, weights, 0),
                           .tokens = tokens,
                           .n_tokens = n_tokens};
    return sw_step_status(step, NULL);
}

static sw_tensor *combine(void *context, sw_step *step, const sw_dispatched *dispatched, const sw_tensor *y)
{
    (void)context;
    return sw_op_scatter_rows(step, y, dispatched->weights, dispatched->tokens, dispatched->n_tokens);
}

const sw_stages sw_stages_local = {
    .attend = {.run = attend       },
    .transport = {.dispatch = dispatch, .combine = combine},
    .lookup = {.run = look_up                   },
    .loss = {.run = lose},
};
