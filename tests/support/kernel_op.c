/* The tests that follow from a row on a kernel (kernel_op.h). */
#include "kernel_op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 64, OFFSET = 8, LETTERS = 8 };

static size_t element_bytes(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 ? sizeof(double) : sizeof(float);
}

void *guarded_alloc(sw_dtype dtype, size_t n)
{
    size_t bytes = n * element_bytes(dtype);
    char *memory = malloc(OFFSET + bytes + GUARD);

    assert_non_null(memory);
    memset(memory, 0x5a, OFFSET + bytes + GUARD);
    return memory + OFFSET;
}

bool guarded_free(void *memory, sw_dtype dtype, size_t n)
{
    if (memory == NULL)
        return true;
    const unsigned char *guard = (const unsigned char *)memory + n * element_bytes(dtype);
    const unsigned char *front = (const unsigned char *)memory - OFFSET;
    bool is_whole = true;

    for (size_t i = 0; i < GUARD; i++)
        is_whole = is_whole && guard[i] == 0x5a && front[i % OFFSET] == 0x5a;
    free((char *)memory - OFFSET);
    return is_whole;
}

sw_kernel *kernel_of(sw_kernel_variant variant, uint32_t n_threads)
{
    sw_error err = {0};
    sw_kernel *kernel = NULL;

    if (sw_kernel_create(&kernel, n_threads, variant, &err) != SW_OK)
        fail_msg("%s", err.what);
    return kernel;
}

double gen_value(gen *g)
{
    double unit = (double)(gen_u64(g) >> 11) * 0x1p-52 - 1; /* [-1, 1) */
    return gen_below(g, 32) == 0 ? 30 * unit : 3 * unit;
}

static double at(sw_dtype dtype, const void *values, size_t i)
{
    return dtype == SW_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void put(sw_dtype dtype, void *values, size_t i, double value)
{
    if (dtype == SW_DTYPE_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

void gen_fill(gen *g, sw_dtype dtype, void *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(dtype, values, i, gen_value(g));
}

double largest_error(sw_dtype dtype, const void *got, const void *expected, size_t n, double floor)
{
    double error = 0;
    double largest = floor;

    for (size_t i = 0; i < n; i++) {
        double a = at(dtype, got, i);
        double b = at(dtype, expected, i);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        error = fabs(a - b) > error || isnan(a - b) ? fabs(a - b) : error;
        largest = fabs(b) > largest && !isinf(b) ? fabs(b) : largest;
    }
    return error / largest;
}

static size_t size_of(const op_case *c, char letter)
{
    switch (letter) {
    case 'M':
        return c->rows * c->columns;
    case 'R':
        return c->rows;
    case 'C':
        return c->columns;
    case 'T':
        return c->rows * (c->columns / 2);
    default:
        return 0;
    }
}

static void make_case(const kernel_op *op, gen *g, sw_dtype dtype, op_case *c)
{
    for (size_t i = 0; op->inputs[i] != '\0'; i++) {
        c->in[i] = guarded_alloc(dtype, size_of(c, op->inputs[i]));
        gen_fill(g, dtype, c->in[i], size_of(c, op->inputs[i]));
    }
    for (size_t i = 0; op->outputs[i] != '\0'; i++)
        c->out[i] = guarded_alloc(dtype, size_of(c, op->outputs[i]));
    void *d_out = guarded_alloc(dtype, size_of(c, op->outputs[0]));
    gen_fill(g, dtype, d_out, size_of(c, op->outputs[0]));
    c->d_out = d_out;
    for (size_t i = 0; i < op->n_gradients; i++) {
        c->d_in[i] = guarded_alloc(dtype, size_of(c, op->inputs[i]));
        memset(c->d_in[i], 0, size_of(c, op->inputs[i]) * element_bytes(dtype));
    }
}

static bool clear_case(const kernel_op *op, sw_dtype dtype, op_case *c)
{
    bool is_whole = guarded_free((void *)(uintptr_t)c->d_out, dtype, size_of(c, op->outputs[0]));

    for (size_t i = 0; op->inputs[i] != '\0'; i++) {
        is_whole = guarded_free(c->in[i], dtype, size_of(c, op->inputs[i])) && is_whole;
        is_whole = guarded_free(c->d_in[i], dtype, size_of(c, op->inputs[i])) && is_whole;
    }
    for (size_t i = 0; op->outputs[i] != '\0'; i++)
        is_whole = guarded_free(c->out[i], dtype, size_of(c, op->outputs[i])) && is_whole;
    return is_whole;
}

static void fit_columns(const kernel_op *op, size_t least, op_case *c)
{
    c->columns = c->columns < least ? least : c->columns;
    if (op->multiple != 0)
        c->columns = (c->columns / op->multiple + 1) * op->multiple;
}

/* Sizes around vectors and blocks, and none at all. */
static op_case random_shape(const kernel_op *op, gen *g, size_t least)
{
    static const size_t edges[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 130};
    size_t n_edges = sizeof edges / sizeof edges[0];
    op_case c = {.flags = (uint32_t)gen_u64(g)};

    c.rows = gen_below(g, 2) == 0 ? edges[gen_below(g, (uint32_t)n_edges)] : gen_below(g, 40);
    c.columns = gen_below(g, 2) == 0 ? edges[gen_below(g, (uint32_t)n_edges)] : gen_below(g, 700);
    fit_columns(op, least, &c);
    return c;
}

static void run(const kernel_op *op, const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    op->forward(kernel, dtype, c);
    if (op->backward != NULL)
        op->backward(kernel, dtype, c);
}

static bool far_off(const kernel_op *op, const op_case *got, const op_case *expected, double limit)
{
    bool is_far = false;

    for (size_t i = 0; i < OP_ARRAYS * 2; i++) {
        size_t j = i % OP_ARRAYS;
        bool is_gradient = i >= OP_ARRAYS;
        const char *letters = is_gradient ? op->inputs : op->outputs;
        size_t n = is_gradient ? op->n_gradients : strlen(letters);
        if (j >= n)
            continue;
        double error =
            largest_error(SW_DTYPE_F32, is_gradient ? got->d_in[j] : got->out[j],
                          is_gradient ? expected->d_in[j] : expected->out[j], size_of(got, letters[j]), 1);
        if (!(error <= limit)) {
            (void)fprintf(stderr, "%s: %s %zu is off by %g (%zu rows, %zu columns, flags %x)\n", op->name,
                          is_gradient ? "gradient" : "output", j, error, got->rows, got->columns,
                          (unsigned)got->flags);
            is_far = true;
        }
    }
    return is_far;
}

/* Two cases of one seed, run by two contexts, are not further apart than `limit`. */
static bool agree(const kernel_op *op, gen *g, sw_kernel *kernels[2], double limit)
{
    gen again = *g;
    size_t least = limit > 0 ? op->least : 0;
    op_case a = random_shape(op, g, least);
    op_case b = random_shape(op, &again, least);

    make_case(op, g, SW_DTYPE_F32, &a);
    make_case(op, &again, SW_DTYPE_F32, &b);
    run(op, kernels[0], SW_DTYPE_F32, &a);
    run(op, kernels[1], SW_DTYPE_F32, &b);
    bool is_right = !far_off(op, &a, &b, limit);
    is_right = clear_case(op, SW_DTYPE_F32, &a) && is_right;
    is_right = clear_case(op, SW_DTYPE_F32, &b) && is_right;
    sw_kernel_destroy(kernels[0]);
    sw_kernel_destroy(kernels[1]);
    return is_right;
}

bool op_equals_reference(const kernel_op *op, gen *g)
{
    bool is_right = true;

    for (sw_kernel_variant v = SW_KERNEL_AVX2; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        gen same = *g;
        sw_kernel *kernels[2] = {kernel_of(v, 2), kernel_of(SW_KERNEL_REFERENCE, 1)};
        is_right = agree(op, &same, kernels, 8e-6) && is_right;
    }
    return is_right;
}

bool op_ignores_threads(const kernel_op *op, gen *g)
{
    bool is_right = true;

    for (sw_kernel_variant v = SW_KERNEL_BEST; v <= SW_KERNEL_REFERENCE; v++) {
        for (uint32_t n = 2; n <= 3; n++) {
            gen same = *g;
            sw_kernel *kernels[2] = {kernel_of(v, n), kernel_of(v, 1)};
            is_right = agree(op, &same, kernels, 0) && is_right;
        }
    }
    return is_right;
}

static double objective(const kernel_op *op, const sw_kernel *kernel, const op_case *c)
{
    const double *out = c->out[0];
    const double *d_out = c->d_out;
    double sum = 0;

    op->forward(kernel, SW_DTYPE_F64, c);
    for (size_t i = 0; i < size_of(c, op->outputs[0]); i++)
        sum += out[i] * d_out[i];
    return sum;
}

static bool input_gradient_is_right(const kernel_op *op, const sw_kernel *kernel, const op_case *c, size_t j)
{
    const double step = 1e-5;
    double *x = c->in[j];
    size_t n = size_of(c, op->inputs[j]);
    double *slopes = guarded_alloc(SW_DTYPE_F64, n);

    for (size_t i = 0; i < n; i++) {
        double kept = x[i];
        x[i] = kept + step;
        double above = objective(op, kernel, c);
        x[i] = kept - step;
        double below = objective(op, kernel, c);
        x[i] = kept;
        slopes[i] = (above - below) / (2 * step);
    }
    double error = largest_error(SW_DTYPE_F64, c->d_in[j], slopes, n, 1e-2);
    if (!(error <= 1e-6)) {
        (void)fprintf(stderr, "%s: gradient of input %zu is off by %g (%zu rows, %zu columns, flags %x)\n",
                      op->name, j, error, c->rows, c->columns, (unsigned)c->flags);
    }
    return guarded_free(slopes, SW_DTYPE_F64, n) && error <= 1e-6;
}

bool op_gradient_is_right(const kernel_op *op, gen *g)
{
    op_case c = {
        .rows = gen_between(g, 1, 4), .columns = gen_between(g, 1, 9), .flags = (uint32_t)gen_u64(g)};
    sw_kernel *kernel = kernel_of(SW_KERNEL_REFERENCE, 1);
    bool is_right = true;

    fit_columns(op, op->least, &c);
    make_case(op, g, SW_DTYPE_F64, &c);
    run(op, kernel, SW_DTYPE_F64, &c);
    for (size_t j = 0; j < op->n_gradients; j++)
        is_right = input_gradient_is_right(op, kernel, &c, j) && is_right;
    is_right = clear_case(op, SW_DTYPE_F64, &c) && is_right;
    sw_kernel_destroy(kernel);
    return is_right;
}
