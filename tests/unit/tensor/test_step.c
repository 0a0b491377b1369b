/* A step: sums of gradients, views, custom nodes, regions that run again, failures, memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/convert.h"
#include "tensor/step_state.h"
#include "tensor_op.h"

static sw_kernel *kernel;
static sw_step *step;
static sw_stack *stack; /* of parameters */

static int open_step(void **state)
{
    (void)state;
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

static sw_tensor *parameter(uint32_t n_dims, const uint64_t *dims, const double *values)
{
    sw_tensor *x = NULL;

    assert_int_equal(sw_tensor_create(&x, stack, SW_DTYPE_F64, n_dims, dims, NULL, NULL), SW_OK);
    for (uint64_t i = 0; i < x->storage->n_elems; i++)
        ((double *)x->storage->data)[i] = values == NULL ? 0.1 * (double)(i % 17) - 0.7 : values[i];
    sw_tensor_lend_gradient(x, sw_stack_take(stack, x->storage->n_elems * sizeof(double)));
    return x;
}
#define PARAMETER(values, ...)                                                                               \
    parameter((uint32_t)(sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t)), (uint64_t[]){__VA_ARGS__},     \
              values)

static double gradient_of(const sw_tensor *x, size_t i)
{
    assert_true(x->storage->has_gradient);
    return ((const double *)x->storage->gradient)[i];
}

static double scalar_of(const sw_tensor *y)
{
    assert_non_null(y);
    return *(const double *)sw_tensor_data(y);
}

static void must_go_back(const sw_tensor *y)
{
    sw_error err = {0};

    if (sw_step_backward(step, y, NULL, &err) != SW_OK)
        fail_msg("%s", err.what);
}

static void expect_failure(sw_status status, const char *what)
{
    sw_error err = {0};

    assert_int_equal(sw_step_status(step, &err), status);
    assert_string_equal(err.what, what);
}

/* ---- sums of gradients ---- */

static void gradients_of_all_uses_are_summed(void **state)
{
    const double values[] = {2, 3};
    sw_tensor *x = PARAMETER(values, 2);

    (void)state;
    sw_step_begin(step, true);
    sw_tensor *square = sw_op_multiply(step, x, x);
    sw_tensor *y = sw_op_sum(step, sw_op_add(step, sw_op_add(step, square, x), square));
    assert_true(scalar_of(y) == 2 * 13 + 5);
    must_go_back(y);
    assert_true(gradient_of(x, 0) == 4 * 2 + 1);
    assert_true(gradient_of(x, 1) == 4 * 3 + 1);
}

static void halves_of_one_parameter_get_their_halves_of_its_gradient(void **state)
{
    const double values[] = {1, 2, 3, 4, 5, 6, 7, 8}; /* rows: gate, gate, up, up */
    sw_tensor *fused = PARAMETER(values, 2, 4);

    (void)state;
    sw_step_begin(step, true);
    const sw_tensor *gate = sw_view_slice(step, fused, 1, 0, 2);
    const sw_tensor *up = sw_view_slice(step, fused, 1, 2, 2);
    must_go_back(sw_op_sum(step, sw_op_multiply(step, gate, up)));
    const double expected[] = {3, 4, 1, 2, 7, 8, 5, 6};
    for (size_t i = 0; i < 8; i++)
        assert_true(gradient_of(fused, i) == expected[i]);
}

static void a_gradient_goes_through_split_swap_and_merge(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 2, 6);
    sw_tensor *weight = PARAMETER(NULL, 6, 2);

    (void)state;
    sw_step_begin(step, true);
    sw_tensor *heads = sw_view_swap(step, sw_view_split(step, x, 1, 3), 0, 1); /* [2 heads, 2, 3] */
    sw_tensor *flat = sw_view_merge(step, sw_view_swap(step, heads, 1, 2), 0); /* [6, 2], copied */
    must_go_back(sw_op_sum(step, sw_op_multiply(step, flat, weight)));
    for (size_t row = 0; row < 2; row++) {
        for (size_t c = 0; c < 6; c++)
            assert_true(gradient_of(x, row * 6 + c) == ((double *)weight->storage->data)[c * 2 + row]);
    }
}

static void gradients_are_added_over_steps_until_their_owner_begins_anew(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 3);

    (void)state;
    for (int i = 1; i <= 3; i++) {
        sw_step_begin(step, true);
        must_go_back(sw_op_sum(step, sw_op_scale(step, x, 2)));
        assert_true(gradient_of(x, 1) == 2 * i);
    }
    x->storage->has_gradient = false;
    sw_step_begin(step, true);
    must_go_back(sw_op_sum(step, sw_op_scale(step, x, 2)));
    assert_true(gradient_of(x, 1) == 2);
}

static void what_nothing_flows_back_to_has_no_gradient(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 3);
    sw_tensor *unused = PARAMETER(NULL, 3);

    (void)state;
    sw_step_begin(step, true);
    (void)sw_op_add(step, unused, x); /* a branch that leads nowhere */
    must_go_back(sw_op_sum(step, x));
    assert_true(x->storage->has_gradient);
    assert_false(unused->storage->has_gradient);
}

static void weights_in_a_short_float_have_a_gradient_in_f32(void **state)
{
    const uint64_t dims[2] = {3, 2};
    const uint64_t x_dims[2] = {1, 2};
    const float values[6] = {1, 2, 3, 4, 5, 6};
    float gradient[6];
    sw_tensor *weight = NULL;
    sw_tensor *x = NULL;

    (void)state;
    assert_int_equal(sw_tensor_create(&weight, stack, SW_DTYPE_BF16, 2, dims, NULL, NULL), SW_OK);
    assert_int_equal(sw_tensor_create(&x, stack, SW_DTYPE_F32, 2, x_dims, (float[]){1, 10}, NULL), SW_OK);
    sw_kernel_to_bf16(kernel, values, weight->storage->data, 6);
    sw_tensor_lend_gradient(weight, gradient);
    sw_step_begin(step, true);
    sw_tensor *y = sw_op_linear(step, x, weight, NULL);
    assert_true(((float *)sw_tensor_data(y))[2] == 65);
    must_go_back(sw_op_sum(step, y));
    assert_true(gradient[4] == 1 && gradient[5] == 10);
}

static void a_norm_in_two_pieces_is_the_norm(void **state)
{
    sw_tensor *x[2] = {PARAMETER(NULL, 3, 10), PARAMETER(NULL, 3, 10)};
    sw_tensor *w[2] = {PARAMETER(NULL, 10), PARAMETER(NULL, 10)};
    const sw_rms_args args = {1e-2, 1, 10};
    double sums[2] = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        sw_step_begin(step, true);
        const sw_tensor *y = i == 0
                                 ? sw_op_rms_norm(step, x[0], w[0], args.eps, args.offset)
                                 : sw_op_rms_by_sums(step, x[1], sw_op_square_sums(step, x[1]), w[1], &args);
        const sw_tensor *sum = sw_op_sum(step, sw_op_multiply(step, y, y));
        sums[i] = scalar_of(sum);
        must_go_back(sum);
    }
    assert_true(fabs(sums[0] - sums[1]) < 1e-12);
    for (size_t e = 0; e < 30; e++)
        assert_true(fabs(gradient_of(x[0], e) - gradient_of(x[1], e)) < 1e-12);
    for (size_t e = 0; e < 10; e++)
        assert_true(fabs(gradient_of(w[0], e) - gradient_of(w[1], e)) < 1e-12);
}

/* ---- custom nodes ---- */

typedef struct doubling {
    int forwards;
    int backwards;
    sw_status fails;
} doubling;

static sw_status double_forward(void *context, sw_step *on, const sw_tensor *const *in, sw_tensor **out,
                                sw_error *err)
{
    doubling *d = context;

    d->forwards++;
    if (d->fails != SW_OK)
        return SW_FAIL(err, d->fails, "", "the other side is gone");
    *out = sw_step_tensor(on, SW_DTYPE_F64, in[0]->n_dims, in[0]->dims);
    for (uint64_t i = 0; i < sw_tensor_elems(in[0]); i++)
        ((double *)sw_tensor_data(*out))[i] = 2 * ((const double *)sw_tensor_data(in[0]))[i];
    return SW_OK;
}

static sw_status double_backward(void *context, sw_step *on, const sw_custom_back *back, sw_error *err)
{
    (void)on;
    (void)err;
    ((doubling *)context)->backwards++;
    for (uint64_t i = 0; i < sw_tensor_elems(back->in[0]); i++)
        ((double *)back->d_in[0])[i] = 2 * ((const double *)back->d_out)[i];
    return SW_OK;
}

static const sw_custom twice = {"twice", double_forward, double_backward};

static void a_custom_node_runs_forward_and_backward(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 4);
    doubling d = {0};

    (void)state;
    sw_step_begin(step, true);
    const sw_tensor *in[] = {x};
    sw_tensor *y = sw_step_custom(step, &twice, &d, in, 1);
    must_go_back(sw_op_sum(step, sw_op_add(step, y, x)));
    assert_int_equal(d.forwards, 1);
    assert_int_equal(d.backwards, 1);
    assert_true(gradient_of(x, 3) == 3);
    sw_step_begin(step, false);
    (void)sw_step_custom(step, &twice, &d, in, 1);
    assert_int_equal(d.forwards, 2);
    assert_null(step->last);
}

static sw_status pass_forward(void *context, sw_step *on, const sw_tensor *const *in, sw_tensor **out,
                              sw_error *err)
{
    const sw_tensor *x = in[0];
    if (context != NULL) { /* a view, which is not allowed */
        *out = sw_view_slice(on, x, 0, 0, x->dims[0]);
        return SW_OK;
    }
    return sw_tensor_create(out, sw_step_stack(on), SW_DTYPE_F64, x->n_dims, x->dims, sw_tensor_data(x), err);
}

static const sw_custom pass = {"pass", pass_forward, double_backward};

static void a_custom_node_may_hand_on_the_elements_but_not_the_storage(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 4);
    const sw_tensor *in[] = {x};
    doubling d = {0};
    const sw_custom quiet = {"quiet", pass_forward, double_backward};

    (void)state;
    sw_step_begin(step, true);
    sw_tensor *y = sw_step_custom(step, &quiet, NULL, in, 1);
    assert_ptr_equal(sw_tensor_data(y), sw_tensor_data(x));
    sw_step_begin(step, true);
    assert_null(sw_step_custom(step, &pass, &d, in, 1));
    expect_failure(SW_E_ARGUMENT, "pass: the output has an input's storage");
}

static void a_custom_node_that_fails_is_named(void **state)
{
    const sw_tensor *in[] = {PARAMETER(NULL, 4)};
    doubling d = {.fails = SW_E_PEER};

    (void)state;
    sw_step_begin(step, true);
    assert_null(sw_op_sum(step, sw_step_custom(step, &twice, &d, in, 1)));
    expect_failure(SW_E_PEER, "twice: the other side is gone");
    sw_step_begin(step, true);
    assert_null(sw_step_custom(step, &twice, &d, in, 9));
    expect_failure(SW_E_LIMIT, "twice: 9 inputs, at most 8");
}

/* ---- regions that run again ---- */

typedef struct layer {
    const sw_tensor *up;
    const sw_tensor *down;
    int runs;
} layer;

static sw_tensor *run_layer(void *context, sw_step *on, const sw_tensor *const *in)
{
    layer *l = context;

    l->runs++;
    sw_tensor *h = sw_op_activate(on, sw_op_linear(on, in[0], l->up, NULL), SW_ACT_SILU);
    return sw_op_add(on, in[0], sw_op_linear(on, h, l->down, NULL));
}

/* Two layers, and something on either side; what flows back. */
static size_t train(layer *layers, const sw_tensor *x, bool recomputes)
{
    sw_step_begin(step, true);
    const sw_tensor *h = x;
    for (int i = 0; i < 2; i++) {
        const sw_tensor *in[] = {h};
        h = recomputes ? sw_step_recompute(step, run_layer, &layers[i], in, 1)
                       : run_layer(&layers[i], step, in);
        h = sw_op_add(step, sw_op_add(step, sw_op_scale(step, h, 0.5), sw_op_activate(step, h, SW_ACT_GELU)),
                      sw_op_soft_cap(step, h, 3));
    }
    must_go_back(sw_op_sum(step, sw_op_multiply(step, h, h)));
    return sw_stack_peak(sw_step_stack(step));
}

static void a_region_that_runs_again_has_the_same_gradients_bit_by_bit_and_less_memory(void **state)
{
    layer layers[2];
    double kept[3][200];
    sw_tensor *x = PARAMETER(NULL, 5, 8);
    size_t peaks[2] = {0};
    sw_step *outer = step;

    (void)state;
    for (int i = 0; i < 2; i++)
        layers[i] = (layer){PARAMETER(NULL, 20, 8), PARAMETER(NULL, 8, 20), 0};
    const sw_tensor *all[3] = {x, layers[0].up, layers[1].down};
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sw_step_create(&step, kernel, NULL), SW_OK);
        x->storage->has_gradient = false;
        for (int i = 0; i < 2; i++)
            layers[i].up->storage->has_gradient = layers[i].down->storage->has_gradient = false;
        peaks[again] = train(layers, x, again == 1);
        for (int i = 0; i < 3; i++) {
            size_t bytes = all[i]->storage->n_elems * sizeof(double);
            if (again == 0)
                memcpy(kept[i], all[i]->storage->gradient, bytes);
            else
                assert_memory_equal(kept[i], all[i]->storage->gradient, bytes);
        }
        sw_step_destroy(step);
    }
    step = outer;
    assert_int_equal(layers[0].runs, 3);
    assert_true(peaks[1] < peaks[0]);
}

static void an_input_that_a_region_does_not_use_gets_zeros(void **state)
{
    layer l = {PARAMETER(NULL, 20, 8), PARAMETER(NULL, 8, 20), 0};
    sw_tensor *unused = PARAMETER(NULL, 3);
    const sw_tensor *in[] = {PARAMETER(NULL, 5, 8), unused};

    (void)state;
    memset(unused->storage->gradient, 0xff, 3 * sizeof(double));
    sw_step_begin(step, true);
    must_go_back(sw_op_sum(step, sw_step_recompute(step, run_layer, &l, in, 2)));
    assert_true(gradient_of(unused, 0) == 0 && gradient_of(unused, 2) == 0);
}

static void a_region_that_fails_when_it_runs_again_says_so(void **state)
{
    layer l = {PARAMETER(NULL, 20, 8), PARAMETER(NULL, 8, 20), 0};
    const sw_tensor *in[] = {PARAMETER(NULL, 5, 8)};
    sw_error err = {0};

    (void)state;
    sw_step_begin(step, true);
    sw_tensor *y = sw_op_sum(step, sw_step_recompute(step, run_layer, &l, in, 1));
    l.down = l.up;
    assert_int_equal(sw_step_backward(step, y, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what,
                        "backward of recompute: linear: weight is [20, 8], its dim 1 must be 20 as in "
                        "the inputs before it");
}

/* ---- products that wait for each other ---- */

enum { WAYS = 6 }; /* more than can wait */

/* Some layers of one input and one of another, gathered or one by one; what they give, in turn. */
static void run_layers(const sw_tensor *x, const sw_tensor *other, sw_tensor *const *weights, bool gathers,
                       sw_tensor **out)
{
    if (gathers)
        sw_step_gather_products(step);
    for (size_t i = 0; i < WAYS; i++)
        out[i] = sw_op_linear(step, i == 1 ? other : x, weights[i], NULL);
    sw_step_run_gathered(step);
}

static void expect_same_layers(uint64_t n_rows)
{
    sw_tensor *x = PARAMETER(NULL, n_rows, 8);
    sw_tensor *other = PARAMETER(NULL, n_rows, 8);
    sw_tensor *weights[WAYS];
    sw_tensor *out[WAYS];
    double alone[WAYS][40];
    double slope[2][64];

    for (uint64_t i = 0; i < WAYS; i++)
        weights[i] = PARAMETER(NULL, i + 1, 8);
    for (int gathers = 0; gathers < 2; gathers++) {
        sw_step_begin(step, true);
        run_layers(x, other, weights, gathers == 1, out);
        sw_tensor *sum = NULL;
        for (size_t i = 0; i < WAYS; i++) {
            size_t bytes = (size_t)sw_tensor_elems(out[i]) * sizeof(double);
            if (gathers == 0)
                memcpy(alone[i], sw_tensor_data(out[i]), bytes);
            assert_memory_equal(alone[i], sw_tensor_data(out[i]), bytes);
            sw_tensor *part = sw_op_sum(step, sw_op_multiply(step, out[i], out[i]));
            sum = sum == NULL ? part : sw_op_add(step, sum, part);
        }
        x->storage->has_gradient = false;
        must_go_back(sum);
        for (size_t i = 0; i < n_rows * 8; i++)
            slope[gathers][i] = gradient_of(x, i);
    }
    assert_memory_equal(slope[0], slope[1], n_rows * 8 * sizeof(double));
}

static void gathered_products_are_what_each_is_alone(void **state)
{
    (void)state;
    expect_same_layers(1);
    expect_same_layers(3);
    expect_same_layers(6); /* rows enough to be run at once */
}

static void a_failure_among_gathered_products_is_the_steps(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 1, 8);
    sw_tensor *weights[] = {PARAMETER(NULL, 3, 8), PARAMETER(NULL, 3, 7)};

    (void)state;
    sw_step_begin(step, false);
    sw_step_gather_products(step);
    assert_non_null(sw_op_linear(step, x, weights[0], NULL));
    assert_null(sw_op_linear(step, x, weights[1], NULL));
    sw_step_run_gathered(step);
    expect_failure(SW_E_ARGUMENT, "linear: weight is [3, 7], its dim 1 must be 8 as in the inputs before it");
    sw_step_begin(step, false);
    const sw_tensor *y = sw_op_linear(step, x, weights[0], NULL); /* at once again */
    assert_non_null(y);
    assert_int_equal(step->n_gathered, 0);
}

/* ---- a watch ---- */

static double ticks;

/* A second goes by from each look at the clock to the next. */
static double tick(void)
{
    return ++ticks;
}

static void a_watch_counts_each_operation_once_and_none_inside_another(void **state)
{
    layer l = {PARAMETER(NULL, 20, 8), PARAMETER(NULL, 8, 20), 0};
    const sw_tensor *in[] = {PARAMETER(NULL, 5, 8)};
    sw_watch watch = {.now = tick};

    (void)state;
    sw_step_watch(step, &watch);
    sw_step_begin(step, true);
    must_go_back(sw_op_sum(step, sw_op_scale(step, in[0], 2)));
    assert_true(watch.seconds == 4); /* two, forward and backward */
    sw_step_begin(step, true);
    must_go_back(sw_op_sum(step, sw_step_recompute(step, run_layer, &l, in, 1)));
    assert_true(watch.seconds == 8);
    sw_step_watch(step, NULL);
    sw_step_begin(step, true);
    must_go_back(sw_op_sum(step, in[0]));
    assert_true(watch.seconds == 8 && watch.depth == 0);
}

/* ---- failures ---- */

static void the_first_failure_stays_and_nothing_runs_behind_it(void **state)
{
    const double values[] = {1, 2, 3, 4, 5, 6};
    sw_tensor *x = PARAMETER(values, 2, 3);
    sw_tensor *weight = PARAMETER(NULL, 4, 2);
    sw_error err = {0};

    (void)state;
    sw_step_begin(step, true);
    sw_tensor *y = sw_op_softmax(step, sw_op_linear(step, x, weight, NULL));
    assert_null(y);
    assert_null(sw_view_split(step, x, 0, 7));
    assert_null(sw_step_tensor(step, SW_DTYPE_F32, 0, NULL));
    expect_failure(SW_E_ARGUMENT, "linear: weight is [4, 2], its dim 1 must be 3 as in the inputs before it");
    assert_int_equal(sw_step_backward(step, y, NULL, &err), SW_E_ARGUMENT);
    sw_step_begin(step, true);
    assert_int_equal(sw_step_status(step, NULL), SW_OK);
    assert_non_null(sw_op_softmax(step, x));
}

typedef struct refusal {
    const char *what;
    sw_tensor *(*run)(void);
} refusal;

static sw_tensor *matrix(sw_dtype dtype, uint64_t rows, uint64_t columns)
{
    sw_tensor *x = NULL;
    const uint64_t dims[2] = {rows, columns};

    assert_int_equal(sw_tensor_create(&x, stack, dtype, 2, dims, NULL, NULL), SW_OK);
    memset(x->storage->data, 0, x->storage->n_elems * sw_elem_bytes(dtype));
    return x;
}

static sw_tensor *missing(void)
{
    return sw_op_linear(step, matrix(SW_DTYPE_F32, 2, 3), NULL, NULL);
}

static sw_tensor *missing_view(void)
{
    return sw_view_swap(step, NULL, 0, 1);
}

static sw_tensor *other_type(void)
{
    return sw_op_add(step, matrix(SW_DTYPE_F32, 2, 3), matrix(SW_DTYPE_F64, 2, 3));
}

static sw_tensor *short_activation(void)
{
    return sw_op_softmax(step, matrix(SW_DTYPE_BF16, 2, 3));
}

static sw_tensor *short_weight_of_f64(void)
{
    return sw_op_linear(step, matrix(SW_DTYPE_F64, 2, 3), matrix(SW_DTYPE_BF16, 2, 3), NULL);
}

static sw_tensor *numbers_as_values(void)
{
    return sw_op_embedding(step, matrix(SW_DTYPE_F32, 2, 3), matrix(SW_DTYPE_F32, 2, 3));
}

static sw_tensor *other_shape(void)
{
    return sw_op_add(step, matrix(SW_DTYPE_F32, 2, 3), matrix(SW_DTYPE_F32, 2, 4));
}

static sw_tensor *fewer_dims(void)
{
    sw_tensor *x = matrix(SW_DTYPE_F32, 2, 3);
    return sw_op_add(step, sw_view_split(step, x, 1, 1), x);
}

static sw_tensor *bias_without_weight(void)
{
    sw_tensor *bias = sw_view_merge(step, matrix(SW_DTYPE_F32, 1, 3), 0);
    return sw_op_layer_norm(step, matrix(SW_DTYPE_F32, 2, 3), NULL, bias, 1e-5);
}

static sw_tensor *largest_of_fewer(void)
{
    return sw_op_top_k(step, matrix(SW_DTYPE_F32, 2, 3), &(sw_top_k_choice){.k = 4}, NULL);
}

static sw_tensor *largest_of_few_groups(void)
{
    sw_top_k_choice choice = {.k = 3, .n_groups = 4, .n_kept = 2, .group_best = 1};
    return sw_op_top_k(step, matrix(SW_DTYPE_F32, 2, 4), &choice, NULL);
}

static sw_tensor *uneven_groups(void)
{
    sw_top_k_choice choice = {.k = 1, .n_groups = 2, .n_kept = 1, .group_best = 1};
    return sw_op_top_k(step, matrix(SW_DTYPE_F32, 2, 3), &choice, NULL);
}

/* Of three rows and two experts. */
static sw_tensor *experts_of(int32_t first, int32_t second)
{
    sw_tensor *ends = sw_view_merge(step, matrix(SW_DTYPE_I32, 1, 2), 0);
    sw_tensor *weight = sw_view_split(step, matrix(SW_DTYPE_F32, 4, 5), 0, 2);
    ((int32_t *)ends->storage->data)[0] = first;
    ((int32_t *)ends->storage->data)[1] = second;
    return sw_op_expert_linear(step, matrix(SW_DTYPE_F32, 3, 5), weight, NULL, ends);
}

static sw_tensor *rows_beyond(void)
{
    return experts_of(1, 4);
}

static sw_tensor *rows_that_turn_back(void)
{
    return experts_of(3, 2);
}

static sw_tensor *no_cap(void)
{
    return sw_op_soft_cap(step, matrix(SW_DTYPE_F32, 2, 3), 0);
}

static sw_tensor *target_beyond(void)
{
    sw_tensor *targets = matrix(SW_DTYPE_I32, 1, 2);
    ((int32_t *)targets->storage->data)[1] = 3;
    return sw_op_cross_entropy(step, sw_view_split(step, matrix(SW_DTYPE_F32, 2, 3), 0, 2), targets, 1);
}

static sw_tensor *position_beyond(void)
{
    sw_tensor *positions = matrix(SW_DTYPE_I32, 1, 2);
    sw_tensor *table = matrix(SW_DTYPE_F32, 4, 1);
    sw_rope_args args = {table, table, positions, false};
    ((int32_t *)positions->storage->data)[0] = -1;
    sw_tensor *x = sw_view_split(step, matrix(SW_DTYPE_F32, 2, 6), 1, 3);
    return sw_op_rope(step, sw_view_split(step, x, 0, 2), &args);
}

static sw_tensor *heads_not_divided(void)
{
    sw_tensor *positions = matrix(SW_DTYPE_I32, 1, 2);
    sw_tensor *q = sw_view_split(step, sw_view_split(step, matrix(SW_DTYPE_F32, 2, 6), 1, 2), 0, 2);
    sw_tensor *k = sw_view_split(step, sw_view_split(step, matrix(SW_DTYPE_F32, 2, 4), 1, 2), 0, 2);
    sw_attend_args args = {.q_positions = positions, .k_positions = positions, .scale = 1};
    return sw_op_attention(step, q, k, k, &args);
}

static sw_tensor *constant_with_gradient(void)
{
    sw_tensor *table = matrix(SW_DTYPE_F32, 4, 1);
    sw_rope_args args = {table, table, matrix(SW_DTYPE_I32, 1, 2), false};
    sw_tensor_lend_gradient(table, sw_stack_take(stack, 64));
    sw_tensor *x = sw_view_split(step, matrix(SW_DTYPE_F32, 2, 6), 1, 3);
    return sw_op_rope(step, sw_view_split(step, x, 0, 2), &args);
}

static const refusal refusals[] = {
    {"linear: weight is missing",                                                         missing               },
    {"swap: x is missing",                                                                missing_view          },
    {"add: b is F64, but must be F32",                                                    other_type            },
    {"softmax: activations are F32 or F64, not BF16",                                     short_activation      },
    {"linear: weight is BF16, but must be F64 or a short float beside F32",               short_weight_of_f64   },
    {"embedding: ids is F32, but must be I32",                                            numbers_as_values     },
    {"add: b is [2, 4], its dim 1 must be 3 as in the inputs before it",                  other_shape           },
    {"add: b is [2, 3], but has 3 dims",                                                  fewer_dims            },
    {"layer_norm: a bias, but no weight",                                                 bias_without_weight   },
    {"top_k: the 4 largest of 3",                                                         largest_of_fewer      },
    {"top_k: the 3 largest of 2",                                                         largest_of_few_groups },
    {"top_k: 1 of 2 groups of a row of 3",                                                uneven_groups         },
    {"expert_linear: rows of expert 1 are 1 to 4 of 3",                                   rows_beyond           },
    {"expert_linear: rows of expert 1 are 3 to 2 of 3",                                   rows_that_turn_back   },
    {"soft_cap: a cap of 0",                                                              no_cap                },
    {"cross_entropy: target 3 of row 1, there are 3 logits",                              target_beyond         },
    {"rope: position -1 of token 0, the tables have 4",                                   position_beyond       },
    {"attention: k is [1, 2, 2, 2], its dim 2 must divide the 3 of the inputs before it", heads_not_divided     },
    {"rope: cos has no gradient",                                                         constant_with_gradient},
};

static void what_an_operation_cannot_take_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(refusals); i++) {
        sw_error err = {0};
        sw_step_begin(step, true);
        assert_null(refusals[i].run());
        assert_int_equal(sw_step_status(step, &err), SW_E_ARGUMENT);
        assert_string_equal(err.what, refusals[i].what);
    }
}

static void there_is_no_way_back_from_what_was_not_recorded(void **state)
{
    sw_tensor *x = PARAMETER(NULL, 3);
    sw_error err = {0};

    (void)state;
    sw_step_begin(step, true);
    assert_int_equal(sw_step_backward(step, x, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "there is no way back from this tensor");
    sw_step_begin(step, false);
    assert_int_equal(sw_step_backward(step, sw_op_sum(step, x), NULL, &err), SW_E_ARGUMENT);
}

/* ---- all operations ---- */

static sw_tensor *run_row(const tensor_op *op, const tensor_case *c, sw_tensor *const *in)
{
    return op->run(step, (const sw_tensor *const *)in, c);
}

/* Every operation in one step, the sums of their results added up. */
typedef struct everything {
    tensor_case cases[TENSOR_OPS];
    sw_tensor *in[TENSOR_OPS][SW_MAX_INPUTS];
} everything;

static void make_everything(everything *e, sw_dtype dtype)
{
    gen g = {3, 3};

    for (size_t i = 0; i < TENSOR_OPS; i++) {
        e->cases[i] = tensor_case_of(&tensor_ops[i], &g, 6);
        tensor_op_inputs(&tensor_ops[i], &e->cases[i], dtype, stack, &g, false, e->in[i]);
    }
}

static sw_status run_everything(const everything *e, sw_error *err)
{
    sw_tensor *loss = NULL;

    sw_step_begin(step, true);
    for (size_t i = 0; i < TENSOR_OPS; i++) {
        sw_tensor *y = sw_op_sum(step, run_row(&tensor_ops[i], &e->cases[i], e->in[i]));
        loss = loss == NULL ? y : sw_op_add(step, loss, y);
    }
    return sw_step_backward(step, loss, NULL, err);
}

static void the_second_step_of_the_same_shapes_allocates_nothing(void **state)
{
    static everything e;
    const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_F64};
    sw_error err = {0};

    (void)state;
    for (size_t d = 0; d < 2; d++) {
        make_everything(&e, dtypes[d]);
        assert_int_equal(run_everything(&e, &err), SW_OK);
        sw_step_begin(step, false); /* puts the memory of the first together */
        sw_alloc_fail_at(1);
        for (int i = 0; i < 3; i++)
            assert_int_equal(run_everything(&e, &err), SW_OK);
        sw_alloc_fail_at(0);
    }
}

static void without_memory_a_step_fails_and_leaks_nothing(void **state)
{
    static everything e;
    sw_step *outer = step;
    uint64_t n = 1;
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    make_everything(&e, SW_DTYPE_F64);
    for (; status == SW_E_NO_MEMORY; n++) {
        sw_error err = {0};
        int64_t live = sw_alloc_live();
        step = NULL;
        sw_alloc_fail_at(n);
        status = sw_step_create(&step, kernel, &err);
        if (status == SW_OK)
            status = run_everything(&e, &err);
        sw_alloc_fail_at(0);
        sw_step_destroy(step);
        assert_int_equal(sw_alloc_live(), live);
        assert_true(status == SW_OK || err.what[0] != '\0');
    }
    step = outer;
    assert_int_equal(status, SW_OK);
    assert_true(n > 3);
}

/* Numbers of a table that is empty, and heads that are narrower than what turns, are refused. */
static void run_with_empty(const tensor_op *op, int letter, uint64_t seed)
{
    gen g = {seed, seed + 5};
    sw_tensor *in[SW_MAX_INPUTS];
    sw_error err = {0};
    tensor_case c = tensor_case_of(op, &g, 4);

    c.n_rest = 1;
    c.rest[0] = letter == '*' ? 0 : 3;
    c.extent[letter] = 0;
    if (letter == 'h')
        c.extent['H'] = 0;
    if (letter == 'C')
        c.extent['K'] = 0;
    tensor_op_inputs(op, &c, SW_DTYPE_F64, stack, &g, seed % 2 == 1, in);
    sw_step_begin(step, true);
    sw_tensor *y = run_row(op, &c, in);
    if (y != NULL)
        must_go_back(sw_op_sum(step, y));
    else if (sw_step_status(step, &err) != SW_E_ARGUMENT || strchr("PCD", letter) == NULL)
        fail_msg("%s with an empty %c: %s", sw_operations[op->op].name, letter, err.what);
}

static void no_extent_of_any_operation_has_to_be_more_than_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < TENSOR_OPS; i++) {
        const sw_signature *s = tensor_op_signature(&tensor_ops[i]);
        run_with_empty(&tensor_ops[i], '*', 0);
        for (uint32_t letter = 0; letter < s->n_letters; letter++)
            run_with_empty(&tensor_ops[i], s->letters[letter], letter);
    }
}

static void expect_close(const tensor_op *op, double a, double b)
{
    if (fabs(a - b) > 1e-3 * (1 + fabs(a)))
        fail_msg("%s: %g and %g", sw_operations[op->op].name, a, b);
}

/* The sum of an operation's result, and gradients of its inputs. */
static double run_in(const tensor_op *op, uint64_t seed, sw_dtype dtype, sw_tensor **in)
{
    gen g = {seed, seed};
    tensor_case c = tensor_case_of(op, &g, 20);

    tensor_op_inputs(op, &c, dtype, stack, &g, false, in);
    sw_step_begin(step, true);
    sw_tensor *y = sw_op_sum(step, run_row(op, &c, in));
    must_go_back(y);
    return dtype == SW_DTYPE_F64 ? scalar_of(y) : (double)*(float *)sw_tensor_data(y);
}

/* The products and loops of F32 are others than those of F64. */
static void f32_gives_what_f64_gives(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10 * TENSOR_OPS; i++) {
        const tensor_op *op = &tensor_ops[i % TENSOR_OPS];
        sw_tensor *wide[SW_MAX_INPUTS] = {NULL};
        sw_tensor *narrow[SW_MAX_INPUTS] = {NULL};
        double sum = run_in(op, i, SW_DTYPE_F64, wide);
        expect_close(op, sum, run_in(op, i, SW_DTYPE_F32, narrow));
        for (uint32_t j = 0; j < SW_MAX_INPUTS; j++) {
            for (uint64_t e = 0;
                 wide[j] != NULL && wide[j]->storage->has_gradient && e < sw_tensor_elems(wide[j]); e++)
                expect_close(op, gradient_of(wide[j], e), (double)((float *)narrow[j]->storage->gradient)[e]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_all_uses_are_summed),
        cmocka_unit_test(halves_of_one_parameter_get_their_halves_of_its_gradient),
        cmocka_unit_test(a_gradient_goes_through_split_swap_and_merge),
        cmocka_unit_test(gradients_are_added_over_steps_until_their_owner_begins_anew),
        cmocka_unit_test(what_nothing_flows_back_to_has_no_gradient),
        cmocka_unit_test(weights_in_a_short_float_have_a_gradient_in_f32),
        cmocka_unit_test(a_norm_in_two_pieces_is_the_norm),
        cmocka_unit_test(a_custom_node_runs_forward_and_backward),
        cmocka_unit_test(a_custom_node_may_hand_on_the_elements_but_not_the_storage),
        cmocka_unit_test(a_custom_node_that_fails_is_named),
        cmocka_unit_test(a_region_that_runs_again_has_the_same_gradients_bit_by_bit_and_less_memory),
        cmocka_unit_test(an_input_that_a_region_does_not_use_gets_zeros),
        cmocka_unit_test(a_region_that_fails_when_it_runs_again_says_so),
        cmocka_unit_test(gathered_products_are_what_each_is_alone),
        cmocka_unit_test(a_failure_among_gathered_products_is_the_steps),
        cmocka_unit_test(a_watch_counts_each_operation_once_and_none_inside_another),
        cmocka_unit_test(the_first_failure_stays_and_nothing_runs_behind_it),
        cmocka_unit_test(what_an_operation_cannot_take_is_refused_by_name),
        cmocka_unit_test(there_is_no_way_back_from_what_was_not_recorded),
        cmocka_unit_test(the_second_step_of_the_same_shapes_allocates_nothing),
        cmocka_unit_test(without_memory_a_step_fails_and_leaks_nothing),
        cmocka_unit_test(no_extent_of_any_operation_has_to_be_more_than_zero),
        cmocka_unit_test(f32_gives_what_f64_gives),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
