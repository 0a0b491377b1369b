/*
 * The backward of every operation against central differences of its forward in F64, over generated shapes:
 * inputs without gaps and as views, gradients written, and added to what is there. And the column `saved`:
 * the backward gives the same when everything else has been overwritten.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/step_state.h"
#include "tensor_op.h"

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

/* One call of an operation; its inputs outlive steps. */
typedef struct trial {
    const tensor_op *op;
    const sw_signature *signature;
    tensor_case c;
    sw_stack *stack;
    sw_tensor *in[SW_MAX_INPUTS];
} trial;

static void must(sw_status status, const sw_error *err)
{
    if (status != SW_OK)
        fail_msg("%s", err->what);
}

/* A tensor of these dims: dense, a part of a longer one, or with two dims swapped. */
static sw_tensor *make_input(const trial *t, gen *g, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims)
{
    uint64_t wide[SW_TENSOR_MAX_DIMS] = {0};
    uint32_t kind = n_dims == 0 ? 0 : gen_below(g, 4);
    uint32_t dim = gen_below(g, n_dims);
    uint32_t other = gen_below(g, n_dims);
    sw_tensor *x = NULL;
    sw_error err = {0};

    memcpy(wide, dims, sizeof wide);
    if (kind == 1)
        wide[dim] += 3;
    if (kind == 2) {
        wide[dim] = dims[other];
        wide[other] = dims[dim];
    }
    must(sw_tensor_create(&x, t->stack, dtype, n_dims, wide, NULL, &err), &err);
    if (kind == 1)
        must(sw_tensor_cut(x, dim, gen_below(g, 4), dims[dim], &err), &err);
    if (kind == 2)
        must(sw_tensor_swap(x, dim, other, &err), &err);
    return x;
}

static bool has_slope(const trial *t, uint32_t i)
{
    const sw_value *value = &t->signature->values[i];
    return t->in[i] != NULL && !value->is_whole_number && !value->is_constant;
}

static void make_trial(trial *t, const tensor_op *op, gen *g)
{
    *t = (trial){op, tensor_op_signature(op), tensor_case_of(op, g, 5), sw_stack_create(), {NULL}};
    for (uint32_t i = 0; i < t->signature->n_inputs; i++) {
        const sw_value *value = &t->signature->values[i];
        uint64_t dims[SW_TENSOR_MAX_DIMS] = {0};
        uint32_t n_dims = tensor_op_dims(op, &t->c, i, dims);
        if (value->is_optional && gen_below(g, 3) == 0)
            continue;
        t->in[i] = make_input(t, g, value->is_whole_number ? SW_DTYPE_I32 : SW_DTYPE_F64, n_dims, dims);
        sw_storage *storage = t->in[i]->storage;
        tensor_op_fill(op, &t->c, i, g, storage->data, storage->n_elems, n_dims == 0 ? 1 : dims[n_dims - 1]);
        if (has_slope(t, i))
            sw_tensor_lend_gradient(t->in[i], sw_stack_take(t->stack, storage->n_elems * sizeof(double)));
    }
}

/* Gradients are written, or added to what is there: this in all elements. */
static void set_gradients(const trial *t, uint32_t added_to, double value)
{
    for (uint32_t i = 0; i < t->signature->n_inputs; i++) {
        if (!has_slope(t, i))
            continue;
        t->in[i]->storage->has_gradient = (added_to & 1U << i) != 0;
        for (uint64_t e = 0; e < t->in[i]->storage->n_elems; e++)
            ((double *)t->in[i]->storage->gradient)[e] = value;
    }
}

static sw_tensor *forward(const trial *t)
{
    sw_error err = {0};
    sw_tensor *y = t->op->run(step, (const sw_tensor *const *)t->in, &t->c);

    must(sw_step_status(step, &err), &err);
    return y;
}

/* sum of weights * y */
static double value_of(const trial *t, const double *weights)
{
    double sum = 0;

    sw_step_begin(step, false);
    const sw_tensor *y = forward(t);
    for (uint64_t e = 0; e < y->storage->n_elems; e++)
        sum += weights[e] * ((const double *)sw_tensor_data(y))[e];
    return sum;
}

static bool slope_is(const trial *t, const sw_storage *storage, uint64_t e, const double *weights,
                     double expected)
{
    const double length = 1e-5;
    double *x = (double *)storage->data + e;
    double was = *x;

    *x = was + length;
    double above = value_of(t, weights);
    *x = was - length;
    double below = value_of(t, weights);
    *x = was;
    double slope = (above - below) / (2 * length);
    if (fabs(slope - expected) <= 1e-5 * (1 + fabs(slope)))
        return true;
    (void)fprintf(stderr, "%s: element %llu of an input: slope %g, gradient %g\n",
                  sw_operations[t->op->op].name, (unsigned long long)e, slope, expected);
    return false;
}

/* Some elements of an input. To one that was not used nothing flows. */
static bool slopes_are_right(const trial *t, uint32_t i, gen *g, const double *weights, double added_to)
{
    const sw_storage *storage = t->in[i]->storage;

    for (int n = 0; n < 6; n++) {
        uint64_t e = gen_below(g, (uint32_t)storage->n_elems);
        double got = storage->has_gradient ? ((double *)storage->gradient)[e] - added_to : 0;
        if (!slope_is(t, storage, e, weights, got))
            return false;
    }
    return true;
}

static double *random_weights(const trial *t, const sw_tensor *y, gen *g)
{
    double *weights = sw_stack_take(t->stack, y->storage->n_elems * sizeof *weights);

    for (uint64_t e = 0; e < y->storage->n_elems; e++)
        weights[e] = (double)gen_below(g, 1000) / 500 - 1;
    return weights;
}

static const tensor_op *op_under_test;

static bool gradient_is_right(gen *g)
{
    const double there = 100;
    uint32_t added_to = (uint32_t)gen_u64(g) & (uint32_t)gen_u64(g);
    sw_error err = {0};
    bool is_right = true;
    trial t;

    make_trial(&t, op_under_test, g);
    set_gradients(&t, added_to, there);
    sw_step_begin(step, true);
    sw_tensor *y = forward(&t);
    double *weights = random_weights(&t, y, g);
    must(sw_step_backward(step, y, weights, &err), &err);
    for (uint32_t i = 0; i < t.signature->n_inputs && is_right; i++) {
        if (has_slope(&t, i))
            is_right = slopes_are_right(&t, i, g, weights, (added_to & 1U << i) != 0 ? there : 0);
    }
    sw_stack_destroy(t.stack);
    return is_right;
}

static void gradients_of_every_operation_are_the_slopes_of_its_forward(void **state)
{
    (void)state;
    for (size_t i = 0; i < TENSOR_OPS; i++) {
        op_under_test = &tensor_ops[i];
        assert_true(gen_holds(gradient_is_right, 400));
    }
}

/* ---- the column `saved` ---- */

static bool is_saved(const sw_value *value)
{
    char words[128];
    char name[32];

    (void)snprintf(words, sizeof words, " %s ", sw_operations[op_under_test->op].saved);
    (void)snprintf(name, sizeof name, " %.*s ", value->name_length, value->name);
    return strstr(words, name) != NULL;
}

static void spoil(const sw_tensor *t, const sw_value *value)
{
    if (t != NULL && !is_saved(value))
        memset(t->storage->data, 0xff, t->storage->n_elems * sw_elem_bytes(t->storage->dtype));
}

/* Everything that the backward should not read. */
static void spoil_all(const trial *t, const sw_call *call, int unused)
{
    (void)unused;
    for (uint32_t i = 0; i < t->signature->n_inputs; i++)
        spoil(t->in[i], &t->signature->values[i]);
    for (uint32_t i = 0; i < t->signature->n_outputs; i++)
        spoil(call->out[i], &t->signature->values[t->signature->n_inputs + i]);
}

static double sum_of_gradients(const trial *t)
{
    double sum = 0;

    for (uint32_t i = 0; i < t->signature->n_inputs; i++) {
        for (uint64_t e = 0; has_slope(t, i) && e < t->in[i]->storage->n_elems; e++)
            sum += ((double *)t->in[i]->storage->gradient)[e] * (double)(e + 1);
    }
    return sum;
}

/* What the backward gives, after `spoil` when it is not NULL. */
typedef void spoil_fn(const trial *t, const sw_call *call, int value);

static double backward_after(const trial *t, spoil_fn *harm, int value)
{
    gen same = {1, 1};
    sw_error err = {0};

    set_gradients(t, 0, 0);
    sw_step_begin(step, true);
    const sw_tensor *y = forward(t);
    const double *weights = random_weights(t, y, &same);
    if (harm != NULL)
        harm(t, step->last, value);
    must(sw_step_backward(step, y, weights, &err), &err);
    return sum_of_gradients(t);
}

static bool backward_reads_what_is_saved(gen *g)
{
    trial t;

    make_trial(&t, op_under_test, g);
    bool is_same = backward_after(&t, NULL, 0) == backward_after(&t, spoil_all, 0);
    sw_stack_destroy(t.stack);
    if (!is_same) {
        (void)fprintf(stderr, "%s: the backward reads more than '%s'\n",
                      sw_operations[op_under_test->op].name, sw_operations[op_under_test->op].saved);
    }
    return is_same;
}

static void the_backward_reads_nothing_but_what_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < TENSOR_OPS; i++) {
        op_under_test = &tensor_ops[i];
        assert_true(gen_holds(backward_reads_what_is_saved, 20));
    }
}

static void clear_one(const trial *t, const sw_call *call, int value)
{
    uint32_t n_inputs = t->signature->n_inputs;
    uint32_t i = (uint32_t)value;
    const sw_tensor *cleared = i < n_inputs ? t->in[i] : call->out[i - n_inputs];

    if (cleared != NULL)
        memset(cleared->storage->data, 0, cleared->storage->n_elems * sw_elem_bytes(cleared->storage->dtype));
}

/* A name of the column: does another value of it ever make a difference? */
static bool is_read(const char *name, size_t length)
{
    bool differs = false;

    for (uint64_t seed = 0; seed < 40 && !differs; seed++) {
        gen g = {seed, seed * 77 + 1};
        trial t;
        make_trial(&t, op_under_test, &g);
        int value = sw_signature_find(t.signature, name, length);
        assert_true(value >= 0);
        differs = backward_after(&t, NULL, 0) != backward_after(&t, clear_one, value);
        sw_stack_destroy(t.stack);
    }
    return differs;
}

static void everything_that_the_table_says_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < TENSOR_OPS; i++) {
        op_under_test = &tensor_ops[i];
        for (const char *at = sw_operations[op_under_test->op].saved; *at != '\0'; at += strspn(at, " ")) {
            size_t length = strcspn(at, " ");
            if (!is_read(at, length))
                fail_msg("%s: %.*s is not read", sw_operations[op_under_test->op].name, (int)length, at);
            at += length;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_every_operation_are_the_slopes_of_its_forward),
        cmocka_unit_test(the_backward_reads_nothing_but_what_the_table_says),
        cmocka_unit_test(everything_that_the_table_says_is_read),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
