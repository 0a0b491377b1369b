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

/* Probabilities [N, experts] of each layer, and who was chosen: counts[e], and of all tokens counts[experts].
 */
static void look(const sw_router_settings *settings, sw_step *step, const sw_router_trace *trace,
                 const sw_tensor **probabilities, double *counts)
{
    const sw_top_k_choice choice = {.k = settings->per_token};

    for (uint32_t i = 0; i < trace->n_layers; i++) {
        const sw_tensor *chosen = NULL;
        if (trace->logits[i] == NULL)
            continue;
        probabilities[i] = sw_op_softmax(step, sw_view_merge(step, trace->logits[i], 0));
        if (sw_op_top_k(step, probabilities[i], &choice, &chosen) == NULL)
            return; /* the step has failed */
        const int32_t *experts = sw_tensor_data(chosen);
        for (uint64_t e = 0; e < sw_tensor_elems(chosen); e++)
            counts[experts[e]]++;
        counts[settings->n_experts] += (double)chosen->dims[0];
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

static sw_tensor *no_routers(sw_step *step)
{
    sw_error err = {0};

    SW_IGNORE(sw_step_fail(step,
                           SW_FAIL(&err, SW_E_ARGUMENT, "give the pass a trace, of a model that has routers",
                                   "no router has said anything"),
                           &err));
    return NULL;
}

sw_tensor *sw_router_loss(const sw_router_settings *settings, const sw_count_stage *count, sw_step *step,
                          const sw_router_trace *trace, double factor)
{
    double *counts = take(step, (size_t)(settings->n_experts + 1) * sizeof *counts);
    const sw_tensor **probabilities =
        trace == NULL ? NULL : take(step, trace->n_layers * sizeof(const sw_tensor *));
    sw_tensor *sum = NULL;

    if (counts == NULL || probabilities == NULL)
        return NULL;
    look(settings, step, trace, probabilities, counts);
    if (count->run != NULL && count->run(count->context, step, counts, settings->n_experts + 1) != SW_OK)
        return NULL;
    const sw_tensor *shares = NULL;
    for (uint32_t i = 0; i < trace->n_layers; i++) {
        if (probabilities[i] == NULL)
            continue;
        if (shares == NULL)
            shares = shares_of(settings, step, sw_tensor_dtype(probabilities[i]), counts, factor);
        sw_tensor *of_layer = sw_op_sum(step, sw_op_linear(step, probabilities[i], shares, NULL));
        sum = sum == NULL ? of_layer : sw_op_add(step, sum, of_layer);
    }
    return sum == NULL ? no_routers(step) : sum;
}
