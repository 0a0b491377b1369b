/* Norms as blocks of rows and, for gradients of weights, of columns (kernel/norm.h). */
#include "kernel/norm.h"

#include <math.h>

#include "kernel/loops.h"

static void over_rows(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop, const sw_norm_args *args)
{
    sw_kernel_do(kernel, dtype, loop, args, args->n_rows, args->width);
}

static void over_columns(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop, const sw_norm_args *args)
{
    if (args->d_weight != NULL || args->d_bias != NULL) {
        sw_kernel_run(kernel, sw_kernel_loop(kernel, dtype, loop), args, args->width,
                      sw_kernel_column_grain(kernel, args->width));
    }
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

void sw_kernel_rms_weight_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_columns(kernel, dtype, SW_LOOP_RMS_WEIGHT, args);
}

void sw_kernel_rms_dots(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_RMS_DOT, args);
}

void sw_kernel_rms_apply_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_RMS_BACK, args);
}

/* Two loops over a few rows at a time, so that the second finds them in the innermost cache. */
typedef struct fused_args {
    const sw_norm_args *norm;
    sw_dtype dtype;
    bool is_forward; /* between the loops, sums of squares become scales */
    sw_block_fn *first;
    sw_block_fn *second;
} fused_args;

static void make_scales(const fused_args *a, size_t begin, size_t end)
{
    size_t bytes = a->dtype == SW_DTYPE_F64 ? sizeof(double) : sizeof(float);
    sw_norm_args rows = *a->norm;

    rows.n_rows = end - begin;
    rows.scale = (char *)rows.scale + begin * bytes;
    sw_kernel_rms_scales(a->dtype, &rows);
}

static void both_loops(const void *args, size_t begin, size_t end)
{
    enum { FEW = 2048 }; /* elements */
    const fused_args *a = args;
    size_t width = a->norm->width;
    size_t step = width == 0 || width >= FEW ? 1 : FEW / width;

    for (size_t r = begin; r < end; r += step) {
        size_t last = end - r < step ? end : r + step;
        a->first(a->norm, r, last);
        if (a->is_forward)
            make_scales(a, r, last);
        a->second(a->norm, r, last);
    }
}

void sw_kernel_rms_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    fused_args fused = {args, dtype, true, sw_kernel_loop(kernel, dtype, SW_LOOP_SQUARE_SUM),
                        sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_APPLY)};
    sw_kernel_run(kernel, both_loops, &fused, args->n_rows, sw_kernel_grain(args->width));
}

void sw_kernel_rms_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    fused_args fused = {args, dtype, false, sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_DOT),
                        sw_kernel_loop(kernel, dtype, SW_LOOP_RMS_BACK)};
    sw_kernel_rms_weight_back(kernel, dtype, args);
    sw_kernel_run(kernel, both_loops, &fused, args->n_rows, sw_kernel_grain(args->width));
}

void sw_kernel_layer_norm(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_rows(kernel, dtype, SW_LOOP_LAYER_NORM, args);
}

void sw_kernel_layer_norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args)
{
    over_columns(kernel, dtype, SW_LOOP_LAYER_WEIGHT, args);
    over_rows(kernel, dtype, SW_LOOP_LAYER_BACK, args);
}
