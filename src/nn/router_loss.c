/* The auxiliary loss of routers (nn/router.h). */
#include <string.h>

#include "base/status.h"
#include "nn/router.h"

static void *take(sw_step *step, size_t bytes)
{
    sw_error err = {0};
    void *memory = sw_step_status(step, NULL) == SW_OK ? sw_stack_take(sw_step_stack(step), bytes) : NULL;

    if (memory == NULL) {
        SW_IGNORE(
            sw_step_fail(step, SW_FAIL(&err, SW_E_NO_MEMORY, "", "no memory for a trace of routers"), &err));
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

sw_router_trace *sw_router_trace_begin(sw_step *step, uint32_t n_layers)
{
    sw_router_trace *trace = take(step, sizeof *trace);
    const sw_tensor **logits = take(step, n_layers * sizeof(const sw_tensor *));

    if (logits == NULL)
        return NULL;
    *trace = (sw_router_trace){.logits = logits, .n_layers = n_layers};
    return trace;
}

/* One pass that is looked at. */
typedef struct looking {
    const sw_router_settings *settings;
    const sw_router_stage *stage;
    const sw_router_trace *trace;
    const sw_tensor *places;         /* NULL: there is a token everywhere */
    const sw_tensor **probabilities; /* of each layer, [N, experts] */
    double *counts;                  /* of who was chosen; counts[experts]: of all tokens */
} looking;

static void count(const looking *l, const sw_tensor *chosen)
{
    const int32_t *experts = sw_tensor_data(chosen);
    const int32_t *at = l->places == NULL ? NULL : sw_tensor_data(l->places);
    uint64_t k = chosen->dims[1];

    for (uint64_t i = 0; i < chosen->dims[0]; i++) {
        if (at != NULL && at[i] < 0)
            continue;
        l->counts[l->settings->n_experts]++;
        for (uint64_t c = 0; c < k; c++)
            l->counts[experts[i * k + c]]++;
    }
}

static void look(const looking *l, sw_step *step)
{
    const sw_top_k_choice choice = {.k = l->settings->per_token};

    for (uint32_t i = 0; i < l->trace->n_layers; i++) {
        const sw_tensor *logits = l->trace->logits[i];
        const sw_tensor *chosen = NULL;
        if (logits == NULL)
            continue;
        if (l->stage->once != NULL)
            logits = l->stage->once(l->stage->context, step, logits);
        l->probabilities[i] = sw_op_softmax(step, logits);
        if (sw_op_top_k(step, l->probabilities[i], &choice, &chosen) == NULL)
            return; /* the step has failed */
        count(l, chosen);
    }
}

/* [1, experts]: what a probability is multiplied with, a constant. */
static const sw_tensor *shares_of(const sw_router_settings *settings, sw_step *step, sw_dtype dtype,
                                  const double *counts, double factor)
{
    const uint64_t dims[] = {1, settings->n_experts};
    sw_tensor *shares = sw_step_tensor(step, dtype, 2, dims);
    double n = counts[settings->n_experts];
    double scale = n > 0 ? factor * (double)settings->n_experts / n / n : 0;

    for (uint64_t e = 0; shares != NULL && e < settings->n_experts; e++) {
        if (dtype == SW_DTYPE_F64)
            ((double *)sw_tensor_data(shares))[e] = scale * counts[e];
        else
            ((float *)sw_tensor_data(shares))[e] = (float)(scale * counts[e]);
    }
    return shares;
}

/* What is 0 where there is no token, else 1; NULL: there is one everywhere. */
static const sw_tensor *presence_of(const looking *l, sw_step *step, sw_dtype dtype)
{
    uint64_t n = l->places == NULL ? 0 : sw_tensor_elems(l->places);
    sw_tensor *presence = l->places == NULL ? NULL : sw_step_tensor(step, dtype, 1, &n);

    for (uint64_t i = 0; presence != NULL && i < n; i++) {
        bool is_there = ((const int32_t *)sw_tensor_data(l->places))[i] >= 0;
        if (dtype == SW_DTYPE_F64)
            ((double *)sw_tensor_data(presence))[i] = is_there;
        else
            ((float *)sw_tensor_data(presence))[i] = is_there;
    }
    return presence;
}

/* Over the layers; NULL when none has a router. */
static sw_tensor *sum_layers(const looking *l, sw_step *step, double factor)
{
    const sw_tensor *shares = NULL;
    const sw_tensor *presence = NULL;
    sw_tensor *sum = NULL;

    for (uint32_t i = 0; i < l->trace->n_layers; i++) {
        const sw_tensor *probabilities = l->probabilities[i];
        if (probabilities == NULL)
            continue;
        sw_dtype dtype = sw_tensor_dtype(probabilities);
        if (shares == NULL) {
            shares = shares_of(l->settings, step, dtype, l->counts, factor);
            presence = presence_of(l, step, dtype);
        }
        const sw_tensor *of_tokens = sw_op_linear(step, probabilities, shares, NULL);
        if (l->places != NULL)
            of_tokens = sw_op_row_scale(step, of_tokens, presence);
        sw_tensor *of_layer = sw_op_sum(step, of_tokens);
        sum = sum == NULL ? of_layer : sw_op_add(step, sum, of_layer);
    }
    return sum;
}

static sw_tensor *no_routers(sw_step *step)
{
    sw_error err = {0};

    SW_IGNORE(sw_step_fail(step,
                           SW_FAIL(&err, SW_E_ARGUMENT, "give the pass a trace, of a model that has routers",
                                   "no router has said anything"),
                           &err));
    return NULL;
}

sw_tensor *sw_router_loss(const sw_router_settings *settings, const sw_router_stage *stage, sw_step *step,
                          const sw_router_trace *trace, double factor)
{
    uint64_t n_counts = settings->n_experts + 1;
    looking l = {.settings = settings, .stage = stage, .trace = trace};

    l.counts = take(step, (size_t)n_counts * sizeof *l.counts);
    l.probabilities = trace == NULL ? NULL : take(step, trace->n_layers * sizeof(const sw_tensor *));
    if (l.counts == NULL || l.probabilities == NULL)
        return NULL;
    l.places = sw_router_places(stage, step, trace->places);
    look(&l, step);
    if (stage->count != NULL && stage->count(stage->context, step, l.counts, n_counts) != SW_OK)
        return NULL;
    sw_tensor *sum = sum_layers(&l, step, factor);
    if (sum == NULL)
        return no_routers(step);
    return stage->sum == NULL ? sum : stage->sum(stage->context, step, sum);
}
