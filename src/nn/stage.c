/* What stages do on one rank: operations, and nothing that crosses (nn/stage.h). */
#include "nn/stage.h"

#include "base/status.h"
#include "kernel/rows.h"

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

/* The choices in the order of their experts; those of one expert stay in the order of their tokens. */
typedef struct order {
    sw_tensor *choices; /* I32 [M]: which of the N * k choices a row is */
    sw_tensor *tokens;  /* I32 [M]: of a row */
    sw_tensor *ends;    /* I32 [experts] */
} order;

/* Choices that are experts, and where they stand, one behind the other; both have room for all. */
static uint64_t keep_choices(const int32_t *experts, uint64_t n, int32_t *kept, int32_t *at)
{
    uint64_t n_kept = 0;

    for (uint64_t i = 0; i < n; i++) {
        kept[n_kept] = experts[i];
        at[n_kept] = (int32_t)i;
        n_kept += experts[i] >= 0; /* else nobody is chosen: padding */
    }
    return n_kept;
}

static sw_status put_in_order(sw_step *step, const sw_routing *routing, order *out)
{
    const sw_tensor *experts = routing->experts;
    uint64_t per_token = experts == NULL ? 0 : experts->dims[1];
    uint64_t n = experts == NULL ? 0 : experts->dims[0] * per_token;
    const uint64_t room[] = {2, n};
    sw_tensor *kept = sw_step_tensor(step, SW_DTYPE_I32, 2, room);

    SW_TRY(sw_step_status(step, NULL));
    int32_t *numbers = sw_tensor_data(kept);
    int32_t *at = numbers + n;
    uint64_t n_rows = keep_choices(sw_tensor_data(experts), n, numbers, at);
    *out = (order){.choices = sw_step_tensor(step, SW_DTYPE_I32, 1, &n_rows),
                   .tokens = sw_step_tensor(step, SW_DTYPE_I32, 1, &n_rows),
                   .ends = sw_step_tensor(step, SW_DTYPE_I32, 1, &routing->n_experts)};
    SW_TRY(sw_step_status(step, NULL));
    int32_t *choices = sw_tensor_data(out->choices);
    int32_t *tokens = sw_tensor_data(out->tokens);
    sw_kernel_sort(numbers, (size_t)n_rows, (size_t)routing->n_experts, choices, sw_tensor_data(out->ends));
    for (uint64_t i = 0; i < n_rows; i++) {
        choices[i] = at[choices[i]];
        tokens[i] = choices[i] / (int32_t)per_token;
    }
    return SW_OK;
}

static sw_status dispatch(void *context, sw_step *step, const sw_tensor *x, const sw_routing *routing,
                          sw_dispatched *out)
{
    order o = {0};

    (void)context;
    SW_TRY(put_in_order(step, routing, &o));
    const sw_tensor *weights = sw_view_split(step, sw_view_merge(step, routing->weights, 0), 0, 1);
    weights = sw_view_merge(step, sw_op_gather_rows(step, weights, o.choices), 0);
    *out = (sw_dispatched){.rows = sw_op_gather_rows(step, x, o.tokens),
                           .ends = o.ends,
                           .weights = weights,
                           .tokens = o.tokens,
                           .n_tokens = x == NULL ? 0 : x->dims[0]};
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
