/* The choice of experts (nn/router.h). */
#include "nn/router.h"

#include "base/status.h"

/* What is added to sums that divide, so that a token whose scores are all 0 has weights of 0. */
static const double least_sum = 1e-20;

static const sw_tensor *score(sw_step *step, sw_router_scores kind, const sw_tensor *logits)
{
    switch (kind) {
    case SW_SCORES_SOFTMAX:
        return sw_op_softmax(step, logits);
    case SW_SCORES_SIGMOID:
        return sw_op_activate(step, logits, SW_ACT_SIGMOID);
    case SW_SCORES_OF_CHOSEN:
        break;
    }
    return logits;
}

sw_routing sw_route(const sw_router *router, sw_step *step, const sw_tensor *x)
{
    const sw_router_settings *s = router->settings;
    sw_routing out = {.n_experts = s->n_experts};
    sw_top_k_choice choice = {.k = s->per_token,
                              .correction = router->correction,
                              .n_groups = s->n_groups,
                              .n_kept = s->n_kept,
                              .group_best = s->group_best};
    const sw_tensor *logits = sw_op_linear(step, x, router->weight, router->bias);
    const sw_tensor *weights = sw_op_top_k(step, score(step, s->scores, logits), &choice, &out.experts);

    out.logits = logits;
    if (s->scores == SW_SCORES_OF_CHOSEN)
        weights = sw_op_softmax(step, weights);
    if (s->normalises)
        weights = sw_op_normalise(step, weights, least_sum);
    out.weights = s->scale == 1 ? weights : sw_op_scale(step, weights, s->scale);
    return out;
}

const sw_tensor *sw_router_places(const sw_router_stage *stage, sw_step *step, const sw_tensor *places)
{
    return places == NULL || stage->places == NULL ? places : stage->places(stage->context, step, places);
}

const sw_tensor *sw_router_choices(sw_step *step, const sw_tensor *experts, const sw_tensor *places)
{
    sw_tensor *out = NULL;

    if (experts == NULL || places == NULL)
        return experts;
    out = sw_step_tensor(step, SW_DTYPE_I32, 2, experts->dims);
    if (out == NULL)
        return NULL;
    const int32_t *given = sw_tensor_data(experts);
    const int32_t *at = sw_tensor_data(places);
    int32_t *kept = sw_tensor_data(out);
    uint64_t k = experts->dims[1];
    for (uint64_t i = 0; i < experts->dims[0] * k; i++)
        kept[i] = at[i / k] < 0 ? -1 : given[i];
    out->layout = experts->layout;
    return out;
}
