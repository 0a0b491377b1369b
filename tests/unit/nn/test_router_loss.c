/* The auxiliary loss of routers: by the formula, of ranks, and of layers that run again in the backward. */
#include "golden_case.h"
#include "net_case.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

/* ---- of given logits ---- */

enum { LAYERS = 3, ROWS = 2, TOKENS = 5, EXPERTS = 4, CHOSEN = 2, PER_LAYER = ROWS * TOKENS * EXPERTS };

static const sw_router_settings settings = {.n_experts = EXPERTS, .per_token = CHOSEN, .scale = 1};

static sw_kernel *kernel;
static sw_step *step;

static int open_step(void **state)
{
    (void)state;
    return sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL) != SW_OK ||
           sw_step_create(&step, kernel, NULL) != SW_OK;
}

static int close_step(void **state)
{
    (void)state;
    sw_step_destroy(step);
    sw_kernel_destroy(kernel);
    return 0;
}

static double logit(uint32_t layer, size_t i)
{
    return sin((double)(layer * PER_LAYER + i) * 1.7) * 2;
}

/* What a token adds to the shares and the means, not yet divided. */
static void add_token(const double *logits, double *chosen, double *probability)
{
    double sum = 0;

    for (size_t e = 0; e < EXPERTS; e++)
        sum += exp(logits[e]);
    for (size_t e = 0; e < EXPERTS; e++) {
        size_t better = 0;
        for (size_t other = 0; other < EXPERTS; other++)
            better += logits[other] > logits[e];
        chosen[e] += better < CHOSEN;
        probability[e] += exp(logits[e]) / sum;
    }
}

/* Of two layers of three; the one between has no router. */
static double loss_by_the_formula(void)
{
    double chosen[EXPERTS] = {0};
    double probability[EXPERTS] = {0};
    double logits[EXPERTS];
    double n = 2 * ROWS * TOKENS;
    double loss = 0;

    for (uint32_t layer = 0; layer < LAYERS; layer += 2) {
        for (size_t i = 0; i < PER_LAYER; i++) {
            logits[i % EXPERTS] = logit(layer, i);
            if (i % EXPERTS == EXPERTS - 1)
                add_token(logits, chosen, probability);
        }
    }
    for (size_t e = 0; e < EXPERTS; e++)
        loss += chosen[e] / n * probability[e] / n;
    return EXPERTS * loss;
}

/* The trace of tokens that are here: rows begin .. end - 1. */
static sw_router_trace *trace_of(uint64_t begin, uint64_t end)
{
    const uint64_t dims[] = {(end - begin) * TOKENS, EXPERTS};
    size_t n = (size_t)(end - begin) * TOKENS * EXPERTS;
    sw_router_trace *trace = sw_router_trace_begin(step, LAYERS);

    assert_non_null(trace);
    for (uint32_t layer = 0; layer < LAYERS; layer += 2) {
        sw_tensor *logits = sw_step_tensor(step, SW_DTYPE_F64, 2, dims);
        for (size_t i = 0; i < n; i++)
            ((double *)sw_tensor_data(logits))[i] = logit(layer, begin * TOKENS * EXPERTS + i);
        trace->logits[layer] = logits;
    }
    return trace;
}

static double loss_of(const sw_router_trace *trace, const sw_router_stage *stage, double factor)
{
    const sw_tensor *loss = sw_router_loss(&settings, stage, step, trace, factor);
    sw_error err = {0};

    if (loss == NULL) {
        SW_IGNORE(sw_step_status(step, &err));
        fail_msg("%s", err.what);
    }
    return *(const double *)sw_tensor_data(loss);
}

static const sw_router_stage alone;

static void the_loss_is_the_formula(void **state)
{
    (void)state;
    sw_step_begin(step, false);
    double found = loss_of(trace_of(0, ROWS), &alone, 0.5);
    assert_true(fabs(found - 0.5 * loss_by_the_formula()) < 1e-12);
}

static void equal_probabilities_cost_as_many_as_are_chosen(void **state)
{
    const uint64_t dims[] = {3, EXPERTS};

    (void)state;
    sw_step_begin(step, false);
    sw_router_trace *trace = sw_router_trace_begin(step, 1);
    sw_tensor *logits = sw_step_tensor(step, SW_DTYPE_F64, 2, dims);
    memset(sw_tensor_data(logits), 0, sizeof(double) * 3 * EXPERTS);
    trace->logits[0] = logits;
    assert_true(fabs(loss_of(trace, &alone, 1) - CHOSEN) < 1e-12);
}

/* Tokens that are padding, whatever their logits, change nothing. */
static void padding_is_in_no_count_and_no_mean(void **state)
{
    const uint64_t dims[] = {ROWS, TOKENS};

    (void)state;
    sw_step_begin(step, false);
    double wanted = loss_of(trace_of(0, 1), &alone, 1);
    sw_router_trace *trace = trace_of(0, ROWS);
    sw_tensor *places = sw_step_tensor(step, SW_DTYPE_I32, 2, dims);
    for (int32_t i = 0; i < ROWS * TOKENS; i++)
        ((int32_t *)sw_tensor_data(places))[i] = i < TOKENS ? i : -1;
    trace->places = places;
    double found = loss_of(trace, &alone, 1);
    assert_true(fabs(found - wanted) < 1e-12);
}

/* Two ranks, simulated: the first run gathers what they count, the second has the sums. */
typedef struct counting {
    double sums[EXPERTS + 1];
    bool is_second;
} counting;

static sw_status count_both(void *context, sw_step *on, double *counts, uint64_t n)
{
    counting *c = context;

    (void)on;
    for (uint64_t i = 0; i < n; i++) {
        if (c->is_second)
            counts[i] = c->sums[i];
        else
            c->sums[i] += counts[i];
    }
    return SW_OK;
}

static void losses_of_ranks_sum_to_that_of_all(void **state)
{
    counting both = {.is_second = false};
    const sw_router_stage stage = {.count = count_both, .context = &both};
    double sum = 0;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        both.is_second = pass == 1;
        sum = 0;
        for (uint64_t rank = 0; rank < ROWS; rank++) {
            sw_step_begin(step, false);
            sum += loss_of(trace_of(rank, rank + 1), &stage, 1);
        }
    }
    assert_true(fabs(sum - loss_by_the_formula()) < 1e-12);
}

static void a_model_without_routers_has_no_such_loss(void **state)
{
    sw_error err = {0};

    (void)state;
    sw_step_begin(step, false);
    assert_null(sw_router_loss(&settings, &alone, step, sw_router_trace_begin(step, 2), 1));
    assert_int_equal(sw_step_status(step, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "no router has said anything");
}

/* ---- of a net ---- */

typedef struct gradients {
    float loss;
    float router; /* sums of squares: of a router's weight, of another one */
    float other;
} gradients;

static float square_sum(const sw_net *net, const char *fqn)
{
    const sw_tensor *tensor = sw_net_parameter(net, fqn)->tensor;
    const float *gradient = tensor->storage->gradient;
    float sum = 0;

    assert_true(tensor->storage->has_gradient);
    for (uint64_t i = 0; i < sw_tensor_elems(tensor); i++)
        sum += gradient[i] * gradient[i];
    return sum;
}

static gradients run_net(net_case *c, const int32_t *ids, uint64_t rows, uint64_t columns, bool recomputes)
{
    sw_error err = {0};

    sw_step_begin(c->step, true);
    sw_net_forget_gradients(c->net);
    sw_pass pass = {.tokens = net_case_ids(c, ids, rows, columns),
                    .positions = sw_net_positions(c->net, c->step, rows, columns, 0),
                    .routers = sw_net_trace_routers(c->net, c->step),
                    .recomputes = recomputes};
    assert_non_null(sw_net_hidden(c->net, c->step, &pass));
    const sw_tensor *loss = sw_net_router_loss(c->net, c->step, pass.routers, 1);
    if (sw_step_status(c->step, &err) != SW_OK || sw_step_backward(c->step, loss, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
    return (gradients){*(const float *)sw_tensor_data(loss),
                       square_sum(c->net, "model.layers.1.block_sparse_moe.gate.weight"),
                       square_sum(c->net, "model.layers.0.self_attn.q_proj.weight")};
}

static void layers_that_run_again_give_the_same_loss_and_gradients(void **state)
{
    golden_file golden;
    net_case c;
    sw_net_options options = {.dtype = SW_DTYPE_F32};

    (void)state;
    golden_open(&golden, "mixtral");
    net_case_open(&c, golden_folder("mixtral"), &options, true);
    const int32_t *ids = golden_i32(&golden, "input_ids", NULL);
    const sw_shape *shape = golden_find(&golden, "input_ids").shape;
    gradients once = run_net(&c, ids, shape->dims[0], shape->dims[1], false);
    gradients again = run_net(&c, ids, shape->dims[0], shape->dims[1], true);
    assert_true(once.loss >= 1 && once.router > 0 && once.other > 0);
    assert_memory_equal(&once, &again, sizeof once);
    net_case_close(&c);
    golden_close(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_the_formula),
        cmocka_unit_test(equal_probabilities_cost_as_many_as_are_chosen),
        cmocka_unit_test(padding_is_in_no_count_and_no_mean),
        cmocka_unit_test(losses_of_ranks_sum_to_that_of_all),
        cmocka_unit_test(a_model_without_routers_has_no_such_loss),
        cmocka_unit_test(layers_that_run_again_give_the_same_loss_and_gradients),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
