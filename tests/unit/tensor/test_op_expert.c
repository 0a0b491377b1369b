/* Products of experts' rows: each run is what `linear` gives of it with its expert's weight. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/short_float.h"
#include "gen.h"
#include "tensor/operations.h"

enum { EXPERTS = 5, ROWS = 90, IN = 9, OUT = 7, HELD = 80 };

/* Two experts have no rows, and the last ten rows no expert. */
static const int32_t ends_of_runs[EXPERTS] = {0, 37, 37, 75, HELD};

static sw_kernel *kernel;
static sw_step *step;
static sw_stack *stack;
static gen numbers;

static int open_step(void **state)
{
    (void)state;
    numbers = (gen){5, 9};
    stack = sw_stack_create();
    return sw_kernel_create(&kernel, 2, SW_KERNEL_BEST, NULL) != SW_OK ||
           sw_step_create(&step, kernel, NULL) != SW_OK;
}

static int close_step(void **state)
{
    (void)state;
    sw_step_destroy(step);
    sw_kernel_destroy(kernel);
    sw_stack_destroy(stack);
    return 0;
}

/* Quarters, which a short float holds and whose sums are exact. */
static sw_tensor *parameter(sw_dtype dtype, uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *x = NULL;

    assert_int_equal(sw_tensor_create(&x, stack, dtype, n_dims, dims, NULL, NULL), SW_OK);
    for (uint64_t i = 0; i < x->storage->n_elems; i++) {
        float value = (float)gen_below(&numbers, 17) / 4 - 2;
        if (dtype == SW_DTYPE_BF16)
            ((uint16_t *)x->storage->data)[i] = sw_bf16_of_float(value);
        else
            ((float *)x->storage->data)[i] = value;
    }
    sw_tensor_lend_gradient(x, sw_stack_take(stack, x->storage->n_elems * sizeof(float)));
    return x;
}

typedef sw_tensor *experts_fn(sw_step *step, const sw_tensor *x, const sw_tensor *weight,
                              const sw_tensor *bias, const sw_tensor *ends);
typedef sw_tensor *one_fn(sw_step *step, const sw_tensor *x, const sw_tensor *weight, const sw_tensor *bias);

typedef struct inputs {
    sw_tensor *x;
    sw_tensor *weight;
    sw_tensor *bias;
} inputs;

static inputs make_inputs(sw_dtype weight_type, bool is_in_out)
{
    const uint64_t of_x[] = {ROWS, IN};
    const uint64_t of_weight[] = {EXPERTS, is_in_out ? IN : OUT, is_in_out ? OUT : IN};
    const uint64_t of_bias[] = {EXPERTS, OUT};

    return (inputs){parameter(SW_DTYPE_F32, 2, of_x), parameter(weight_type, 3, of_weight),
                    parameter(SW_DTYPE_F32, 2, of_bias)};
}

static const sw_tensor *run_of(const inputs *in, one_fn *one, uint64_t expert, uint64_t begin, uint64_t end)
{
    sw_tensor *x = sw_view_slice(step, in->x, 0, begin, end - begin);
    sw_tensor *weight = sw_view_merge(step, sw_view_slice(step, in->weight, 0, expert, 1), 0);
    sw_tensor *bias = sw_view_merge(step, sw_view_slice(step, in->bias, 0, expert, 1), 0);
    return one(step, x, weight, bias);
}

static void take_gradients(const inputs *in, float *to)
{
    const sw_tensor *all[] = {in->x, in->weight, in->bias};

    for (size_t i = 0; i < 3; i++) {
        size_t n = (size_t)all[i]->storage->n_elems;
        assert_true(all[i]->storage->has_gradient);
        memcpy(to, all[i]->storage->gradient, n * sizeof *to);
        to += n;
        all[i]->storage->has_gradient = false;
    }
}

enum { GRADIENTS = ROWS * IN + EXPERTS * OUT * IN + EXPERTS * OUT };

static void go_back(const sw_tensor *loss)
{
    sw_error err = {0};

    if (sw_step_backward(step, loss, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
}

static sw_tensor *square_sum(const sw_tensor *y)
{
    return sw_op_sum(step, sw_op_multiply(step, y, y));
}

static void run_experts(const inputs *in, experts_fn *experts, float *y, float *gradients)
{
    const uint64_t of_ends[] = {EXPERTS};

    sw_step_begin(step, true);
    sw_tensor *ends = sw_step_tensor(step, SW_DTYPE_I32, 1, of_ends);
    memcpy(sw_tensor_data(ends), ends_of_runs, sizeof ends_of_runs);
    const sw_tensor *made = experts(step, in->x, in->weight, in->bias, ends);
    assert_non_null(made);
    memcpy(y, sw_tensor_data(made), (size_t)ROWS * OUT * sizeof *y);
    go_back(square_sum(made));
    take_gradients(in, gradients);
}

/* The loss has the sum of x too, times 0: rows of nobody have a gradient, which is 0. */
static void run_each(const inputs *in, one_fn *one, float *y, float *gradients)
{
    sw_step_begin(step, true);
    const sw_tensor *loss = sw_op_scale(step, sw_op_sum(step, in->x), 0);
    memset(y, 0, (size_t)ROWS * OUT * sizeof *y);
    for (uint64_t e = 0; e < EXPERTS; e++) {
        uint64_t begin = e == 0 ? 0 : (uint64_t)ends_of_runs[e - 1];
        const sw_tensor *run = run_of(in, one, e, begin, (uint64_t)ends_of_runs[e]);
        assert_non_null(run);
        memcpy(y + begin * OUT, sw_tensor_data(run), (size_t)sw_tensor_elems(run) * sizeof *y);
        loss = sw_op_add(step, loss, square_sum(run));
    }
    go_back(loss);
    take_gradients(in, gradients);
}

static void check_runs(const inputs *in, experts_fn *experts, one_fn *one)
{
    float y[2][ROWS * OUT];
    float gradients[2][GRADIENTS];

    run_experts(in, experts, y[0], gradients[0]);
    run_each(in, one, y[1], gradients[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (size_t i = 0; i < GRADIENTS; i++)
        assert_true(fabsf(gradients[0][i] - gradients[1][i]) <= 1e-5F * (1 + fabsf(gradients[1][i])));
}

static void each_run_is_multiplied_with_its_experts_weight(void **state)
{
    static const sw_dtype types[] = {SW_DTYPE_F32, SW_DTYPE_BF16};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        inputs in = make_inputs(types[i], false);
        check_runs(&in, sw_op_expert_linear, sw_op_linear);
        in = make_inputs(types[i], true);
        check_runs(&in, sw_op_expert_linear_in_out, sw_op_linear_in_out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_is_multiplied_with_its_experts_weight),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
