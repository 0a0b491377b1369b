/* The transport of one rank: which rows an expert gets, in which order, and what comes back to a token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nn/stage.h"

enum { EXPERTS = 5, WIDTH = 2 };

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

/* Tokens [n, 2] whose elements are their numbers, 10 apart; each chooses `per_token` of the experts. */
static sw_dispatched dispatch(uint64_t n, uint64_t per_token, const int32_t *experts, const float *weights)
{
    const sw_transport_stage *transport = &sw_stages_local.transport;
    const uint64_t of_x[] = {n, WIDTH};
    const uint64_t of_choices[] = {n, per_token};
    sw_dispatched out = {0};
    sw_error err = {0};

    sw_step_begin(step, false);
    sw_tensor *x = sw_step_tensor(step, SW_DTYPE_F32, 2, of_x);
    sw_tensor *chosen = sw_step_tensor(step, SW_DTYPE_I32, 2, of_choices);
    sw_tensor *weighted = sw_step_tensor(step, SW_DTYPE_F32, 2, of_choices);
    for (size_t i = 0; i < n * WIDTH; i++)
        ((float *)sw_tensor_data(x))[i] = (float)(i / WIDTH * 10 + i % WIDTH);
    memcpy(sw_tensor_data(chosen), experts, n * per_token * sizeof *experts);
    memcpy(sw_tensor_data(weighted), weights, n * per_token * sizeof *weights);
    const sw_routing routing = {.experts = chosen, .weights = weighted, .n_experts = EXPERTS};
    if (transport->dispatch(transport->context, step, x, &routing, &out) != SW_OK) {
        (void)sw_step_status(step, &err);
        fail_msg("%s", err.what);
    }
    return out;
}

static void expect_rows(const sw_dispatched *d, const int32_t *ends, const int32_t *tokens)
{
    uint64_t n = d->rows->dims[0];
    const float *rows = sw_tensor_data(d->rows);

    assert_memory_equal(sw_tensor_data(d->ends), ends, EXPERTS * sizeof *ends);
    assert_int_equal(ends[EXPERTS - 1], n);
    for (uint64_t r = 0; r < n; r++)
        assert_true(rows[r * WIDTH] == (float)(tokens[r] * 10) && rows[r * WIDTH + 1] == rows[r * WIDTH] + 1);
}

static void expect_combined(const sw_dispatched *d, const float *factors, uint64_t n)
{
    const sw_transport_stage *transport = &sw_stages_local.transport;
    const sw_tensor *y = transport->combine(transport->context, step, d, d->rows);

    assert_non_null(y);
    assert_int_equal(y->dims[0], n);
    for (uint64_t i = 0; i < n * WIDTH; i++) {
        float x = (float)(i / WIDTH * 10 + i % WIDTH);
        assert_true(((const float *)sw_tensor_data(y))[i] == factors[i / WIDTH] * x);
    }
}

static void experts_have_their_rows_in_the_order_of_the_tokens(void **state)
{
    const int32_t experts[] = {3, 0, 0, 4, 3, 0};
    const float weights[] = {0.5F, 0.25F, 1, 2, 4, 8};
    sw_dispatched d = dispatch(3, 2, experts, weights);

    (void)state;
    expect_rows(&d, (int32_t[]){3, 3, 3, 5, 6}, (int32_t[]){0, 1, 2, 0, 2, 1});
    assert_memory_equal(sw_tensor_data(d.weights), ((float[]){0.25F, 1, 8, 0.5F, 4, 2}), 6 * sizeof(float));
    expect_combined(&d, (float[]){0.75F, 3, 12}, 3);
}

static void one_expert_may_have_every_token(void **state)
{
    const int32_t experts[] = {2, 2, 2, 2};
    const float weights[] = {1, 2, 3, 4};
    sw_dispatched d = dispatch(4, 1, experts, weights);

    (void)state;
    expect_rows(&d, (int32_t[]){0, 0, 4, 4, 4}, (int32_t[]){0, 1, 2, 3});
    expect_combined(&d, weights, 4);
}

static void no_tokens_are_no_rows(void **state)
{
    const int32_t experts[] = {0};
    const float weights[] = {0};
    sw_dispatched d = dispatch(0, 2, experts, weights);

    (void)state;
    expect_rows(&d, (int32_t[]){0, 0, 0, 0, 0}, experts);
    expect_combined(&d, weights, 0);
}

/* Padding chooses nobody: it has no rows, and gets nothing back. */
static void tokens_without_a_choice_are_no_rows(void **state)
{
    const int32_t experts[] = {3, 0, -1, -1, 3, -1};
    const float weights[] = {0.5F, 0.25F, 1, 2, 4, 8};
    sw_dispatched d = dispatch(3, 2, experts, weights);

    (void)state;
    expect_rows(&d, (int32_t[]){1, 1, 1, 3, 3}, (int32_t[]){0, 0, 2});
    assert_memory_equal(sw_tensor_data(d.weights), ((float[]){0.25F, 0.5F, 4}), 3 * sizeof(float));
    expect_combined(&d, (float[]){0.75F, 0, 4}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_have_their_rows_in_the_order_of_the_tokens),
        cmocka_unit_test(one_expert_may_have_every_token),
        cmocka_unit_test(no_tokens_are_no_rows),
        cmocka_unit_test(tokens_without_a_choice_are_no_rows),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
