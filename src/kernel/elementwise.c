/* Elementwise kernels as blocks (kernel/elementwise.h). */
#include "kernel/elementwise.h"

#include "kernel/loops.h"

void sw_kernel_add(const sw_kernel *kernel, sw_dtype dtype, const void *a, const void *b, void *out, size_t n)
{
    sw_map_args args = {.a = a, .b = b, .out = out};
    sw_kernel_do(kernel, dtype, SW_LOOP_ADD, &args, n, 1);
}

void sw_kernel_multiply(const sw_kernel *kernel, sw_dtype dtype, const void *a, const void *b, void *out,
                        size_t n)
{
    sw_map_args args = {.a = a, .b = b, .out = out};
    sw_kernel_do(kernel, dtype, SW_LOOP_MULTIPLY, &args, n, 1);
}

void sw_kernel_scale(const sw_kernel *kernel, sw_dtype dtype, double factor, const void *a, void *out,
                     size_t n)
{
    sw_map_args args = {.a = a, .out = out, .factor = factor};
    sw_kernel_do(kernel, dtype, SW_LOOP_SCALE, &args, n, 1);
}

void sw_kernel_accumulate(const sw_kernel *kernel, sw_dtype dtype, double factor, const void *a, void *out,
                          size_t n)
{
    sw_map_args args = {.a = a, .out = out, .factor = factor};
    sw_kernel_do(kernel, dtype, SW_LOOP_ACCUMULATE, &args, n, 1);
}

void sw_kernel_soft_cap(const sw_kernel *kernel, sw_dtype dtype, double cap, const void *x, void *out,
                        size_t n)
{
    sw_map_args args = {.a = x, .out = out, .factor = cap};
    sw_kernel_do(kernel, dtype, SW_LOOP_SOFT_CAP, &args, n, 1);
}

void sw_kernel_soft_cap_back(const sw_kernel *kernel, sw_dtype dtype, double cap, const void *x,
                             const void *d_out, void *d_x, size_t n)
{
    sw_map_args args = {.a = x, .b = d_out, .out = d_x, .factor = cap};
    sw_kernel_do(kernel, dtype, SW_LOOP_SOFT_CAP_BACK, &args, n, 1);
}

void sw_kernel_clamp(const sw_kernel *kernel, sw_dtype dtype, double limit, const void *x, void *out,
                     size_t n)
{
    sw_map_args args = {.a = x, .out = out, .factor = limit};
    sw_kernel_do(kernel, dtype, SW_LOOP_CLAMP, &args, n, 1);
}

void sw_kernel_clamp_back(const sw_kernel *kernel, sw_dtype dtype, double limit, const void *x,
                          const void *d_out, void *d_x, size_t n)
{
    sw_map_args args = {.a = x, .b = d_out, .out = d_x, .factor = limit};
    sw_kernel_do(kernel, dtype, SW_LOOP_CLAMP_BACK, &args, n, 1);
}

void sw_kernel_activate(const sw_kernel *kernel, sw_dtype dtype, sw_activation activation, const void *x,
                        void *out, size_t n)
{
    sw_map_args args = {.a = x, .out = out, .activation = activation};
    sw_kernel_do(kernel, dtype, SW_LOOP_ACTIVATE, &args, n, 1);
}

void sw_kernel_activate_back(const sw_kernel *kernel, sw_dtype dtype, sw_activation activation, const void *x,
                             const void *d_out, void *d_x, size_t n)
{
    sw_map_args args = {.a = x, .b = d_out, .out = d_x, .activation = activation};
    sw_kernel_do(kernel, dtype, SW_LOOP_ACTIVATE_BACK, &args, n, 1);
}

void sw_kernel_glu(const sw_kernel *kernel, sw_dtype dtype, const sw_glu_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_GLU, args, args->n_rows, args->width);
}

void sw_kernel_glu_back(const sw_kernel *kernel, sw_dtype dtype, const sw_glu_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_GLU_BACK, args, args->n_rows, args->width);
}

void sw_kernel_add_bias(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ADD_BIAS, args, args->n_rows, args->width);
}

void sw_kernel_column_sum(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args)
{
    sw_kernel_run(kernel, sw_kernel_loop(kernel, dtype, SW_LOOP_COLUMN_SUM), args, args->width,
                  sw_kernel_column_grain(kernel, args->width));
}

void sw_kernel_row_scale(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ROW_SCALE, args, args->n_rows, args->width);
}

void sw_kernel_row_dot(const sw_kernel *kernel, sw_dtype dtype, const sw_rows_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ROW_DOT, args, args->n_rows, args->width);
}

/* A long array as at most PARTS stretches of one length, each summed by one block. */
enum { PARTS = 256, LEAST_PART = 4096 };

typedef struct sum_args {
    const void *x;
    size_t n;
    size_t part;
    bool is_f64;
    bool is_squared;
    double *partial;
} sum_args;

static double sum_of(const sum_args *a, size_t begin, size_t end)
{
    enum { LANES = 8 }; /* sums of their own, so that additions overlap */
    double lanes[LANES] = {0};

    for (size_t i = begin; i < end; i++) {
        double x = a->is_f64 ? ((const double *)a->x)[i] : (double)((const float *)a->x)[i];
        lanes[(i - begin) % LANES] += a->is_squared ? x * x : x;
    }
    double sum = 0;
    for (size_t i = 0; i < LANES; i++)
        sum += lanes[i];
    return sum;
}

static void sum_parts(const void *args, size_t begin, size_t end)
{
    const sum_args *a = args;

    for (size_t i = begin; i < end; i++) {
        size_t first = i * a->part;
        a->partial[i] = sum_of(a, first, a->n - first < a->part ? a->n : first + a->part);
    }
}

static double sum_all(const sw_kernel *kernel, sum_args *args)
{
    double partial[PARTS];
    double sum = 0;

    args->part = args->n / PARTS + 1 < LEAST_PART ? LEAST_PART : args->n / PARTS + 1;
    args->partial = partial;
    size_t n_parts = args->n / args->part + (args->n % args->part != 0);
    sw_kernel_run(kernel, sum_parts, args, n_parts, 1);
    for (size_t i = 0; i < n_parts; i++)
        sum += partial[i];
    return sum;
}

double sw_kernel_sum(const sw_kernel *kernel, sw_dtype dtype, const void *x, size_t n)
{
    return sum_all(kernel, &(sum_args){.x = x, .n = n, .is_f64 = dtype == SW_DTYPE_F64});
}

double sw_kernel_square_sum(const sw_kernel *kernel, sw_dtype dtype, const void *x, size_t n)
{
    return sum_all(kernel, &(sum_args){.x = x, .n = n, .is_f64 = dtype == SW_DTYPE_F64, .is_squared = true});
}
