/*
 * Norms as blocks of rows (kernel/norm.h). Gradients of weights are summed over parts of the rows, which are
 * stretches of memory, and then the parts are added in order; over blocks of columns where rows are few.
 */
#include "kernel/norm.h"

#include <math.h>
#include <string.h>

#include "kernel/elementwise.h"
#include "kernel/loops.h"

static void over_rows(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop, const sw_norm_args *args)
{
    sw_kernel_do(kernel, dtype, loop, args, args->n_rows, args->width);
}

void sw_kernel_rms_square_sums(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_SQUARE_SUM, args);
}

void sw_kernel_rms_scales(sw_dtype dtype, const sw_norm_args *args)
{
    double width = (double)(args->full_width != 0 ? args->full_width : args->width);

    for (size_t r = 0; r < args->n_rows; r++) {
        if (dtype == SW_DTYPE_F64) {
            double *scale = (double *)args->scale + r;
            *scale = 1 / sqrt(*scale / width + args->eps);
        } else {
            float *scale = (float *)args->scale + r;
            *scale = (float)(1 / sqrt((double)*scale / width + args->eps));
        }
    }
}

void sw_kernel_rms_apply(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_RMS_APPLY, args);
}

void sw_kernel_rms_dots(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_RMS_DOT, args);
}

void sw_kernel_rms_apply_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_RMS_BACK, args);
}

static size_t elem_bytes(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 ? sizeof(double) : sizeof(float);
}

/* Rows at a time that the loops of a fused one go through: the second finds them in the innermost cache. */
static size_t few_rows(size_t width)
{
    enum { FEW = 8192 }; /* elements */
    return width == 0 || width >= FEW ? 1 : FEW / width;
}

/* What the loops over columns read, of rows begin .. end-1. */
static sw_norm_args rows_of(const sw_norm_args *args, sw_dtype dtype, size_t begin, size_t end)
{
    size_t bytes = elem_bytes(dtype);
    sw_norm_args rows = *args;

    rows.n_rows = end - begin;
    rows.x = (const char *)args->x + begin * args->width * bytes;
    rows.scale = (char *)args->scale + begin * bytes;
    if (args->d_y != NULL)
        rows.d_y = (const char *)args->d_y + begin * args->width * bytes;
    if (args->mean != NULL)
        rows.mean = (char *)args->mean + begin * bytes;
    return rows;
}

/* ---- forward ---- */

typedef struct forward_args {
    const sw_norm_args *norm;
    sw_dtype dtype;
    sw_block_fn *square_sum;
    sw_block_fn *apply;
} forward_args;

static void do_forward(const void *args, size_t begin, size_t end)
{
    const forward_args *a = args;
    size_t step = few_rows(a->norm->width);

    for (size_t r = begin; r < end; r += step) {
        size_t last = end - r < step ? end : r + step;
        sw_norm_args rows = rows_of(a->norm, a->dtype, r, last);
        a->square_sum(a->norm, r, last);
        sw_kernel_rms_scales(a->dtype, &rows);
        a->apply(a->norm, r, last);
    }
}

void sw_kernel_rms_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    forward_args forward = {args, dtype, sw_kernel_loop(kernel, dtype, SW_LOOP_SQUARE_SUM),
                            sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_APPLY)};
    sw_kernel_run(kernel, do_forward, &forward, args->n_rows, sw_kernel_grain(args->width));
}

void sw_kernel_layer_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_LAYER_NORM, args);
}

/* ---- backward ---- */

typedef struct back_args {
    const sw_norm_args *norm;
    sw_dtype dtype;
    size_t n_parts;
    sw_block_fn *weight; /* over columns; the others over rows, NULL: not wanted */
    sw_block_fn *dot;
    sw_block_fn *back;
} back_args;

static bool has_weight_gradients(const sw_norm_args *args)
{
    return args->d_weight != NULL || args->d_bias != NULL;
}

static size_t part_count(const sw_norm_args *args)
{
    enum { LEAST_ROWS = 64, MOST = 32 };
    size_t n = args->n_rows / LEAST_ROWS;
    return n > MOST ? MOST : n;
}

/* Sums of weight gradients in part `i`, then of bias gradients. */
static void *part_at(const back_args *a, size_t i, size_t which)
{
    return (char *)a->norm->parts + (2 * i + which) * a->norm->width * elem_bytes(a->dtype);
}

size_t sw_kernel_norm_parts_bytes(sw_dtype dtype, const sw_norm_args *args)
{
    size_t n = part_count(args);
    return n < 2 || !has_weight_gradients(args) ? 0 : 2 * n * args->width * elem_bytes(dtype);
}

static void back_rows(const back_args *a, size_t begin, size_t end)
{
    if (a->dot != NULL)
        a->dot(a->norm, begin, end);
    if (a->back != NULL)
        a->back(a->norm, begin, end);
}

/* Where there are no weight gradients, or they are made already. */
static void do_back(const void *args, size_t begin, size_t end)
{
    const back_args *a = args;
    size_t step = few_rows(a->norm->width);

    for (size_t r = begin; r < end; r += step)
        back_rows(a, r, end - r < step ? end : r + step);
}

static void do_part(const back_args *a, size_t i)
{
    const sw_norm_args *n = a->norm;
    size_t end = n->n_rows * (i + 1) / a->n_parts;
    size_t begin = n->n_rows * i / a->n_parts;
    size_t step = a->back == NULL ? end - begin : few_rows(n->width);

    memset(part_at(a, i, 0), 0, 2 * n->width * elem_bytes(a->dtype));
    for (size_t r = begin; r < end; r += step) {
        size_t last = end - r < step ? end : r + step;
        sw_norm_args rows = rows_of(n, a->dtype, r, last);
        rows.d_weight = n->d_weight == NULL ? NULL : part_at(a, i, 0);
        rows.d_bias = n->d_bias == NULL ? NULL : part_at(a, i, 1);
        a->weight(&rows, 0, n->width);
        back_rows(a, r, last);
    }
}

static void do_parts(const void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        do_part(args, i);
}

/* The parts of a gradient added to it. */
static void join_parts(const sw_kernel *kernel, const back_args *a, void *gradient, size_t which)
{
    for (size_t i = 0; gradient != NULL && i < a->n_parts; i++)
        sw_kernel_add(kernel, a->dtype, gradient, part_at(a, i, which), gradient, a->norm->width);
}

static void run_back(const sw_kernel *kernel, back_args *a)
{
    const sw_norm_args *n = a->norm;

    a->n_parts = part_count(n);
    if (has_weight_gradients(n) && a->n_parts >= 2) {
        sw_kernel_run(kernel, do_parts, a, a->n_parts, 1);
        join_parts(kernel, a, n->d_weight, 0);
        join_parts(kernel, a, n->d_bias, 1);
        return;
    }
    if (has_weight_gradients(n))
        sw_kernel_run(kernel, a->weight, n, n->width, sw_kernel_column_grain(kernel, n->width));
    if (a->back != NULL)
        sw_kernel_run(kernel, do_back, a, n->n_rows, sw_kernel_grain(n->width));
}

void sw_kernel_rms_weight_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    back_args back = {
        .norm = args, .dtype = dtype, .weight = sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_WEIGHT)};
    run_back(kernel, &back);
}

void sw_kernel_rms_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    back_args back = {.norm = args,
                      .dtype = dtype,
                      .weight = sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_WEIGHT),
                      .dot = sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_DOT),
                      .back = sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_BACK)};
    run_back(kernel, &back);
}

void sw_kernel_layer_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    back_args back = {.norm = args,
                      .dtype = dtype,
                      .weight = sw_kernel_loop(kernel, dtype, SW_LOOP_LAYER_WEIGHT),
                      .back = sw_kernel_loop(kernel, dtype, SW_LOOP_LAYER_BACK)};
    run_back(kernel, &back);
}
