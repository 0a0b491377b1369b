/*
 * Products by tiles of our own: C is cut in blocks of MOST_M x MOST_N; for each of them stretches of K of A
 * and B are copied, in C's type and in the order in which the tile loop reads, to the thread's part of the
 * workspace.
 */
#include "base/short_float.h"
#include "kernel/product_paths.h"

#include <string.h>

enum { MOST_M = 384, MOST_N = 256, MOST_K = 256 };

typedef struct tiles_args {
    const sw_product *p;
    sw_block_fn *tile;
    size_t n_across; /* blocks beside each other */
    char *workspace;
} tiles_args;

static size_t thread_bytes(const sw_product *p)
{
    return ((size_t)MOST_M + MOST_N) * MOST_K * sw_bytes_of(p->c_type);
}

size_t sw_product_tiles_workspace(const sw_kernel *kernel, const sw_product *product)
{
    return sw_kernel_threads(kernel) * thread_bytes(product);
}

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A matrix as it lies: element (r, c) at r * row + c * column. */
typedef struct view {
    const void *values;
    sw_dtype dtype;
    size_t row;
    size_t column;
} view;

static view view_of(const void *values, sw_dtype dtype, size_t stride, bool is_transposed)
{
    return is_transposed ? (view){values, dtype, 1, stride} : (view){values, dtype, stride, 1};
}

static double element(const view *v, size_t at)
{
    switch (v->dtype) {
    case SW_DTYPE_F64:
        return ((const double *)v->values)[at];
    case SW_DTYPE_BF16:
        return (double)sw_float_of_bf16(((const uint16_t *)v->values)[at]);
    default:
        return (double)((const float *)v->values)[at];
    }
}

/* Rows [r, r + rows) and columns [c, c + columns) of a view to `out`, without gaps, as F32 or F64. */
static void copy_block(const view *v, size_t r, size_t c, size_t rows, size_t columns, bool is_f64, void *out)
{
    for (size_t i = 0; i < rows; i++) {
        size_t from = (r + i) * v->row + c * v->column;
        size_t to = i * columns;
        if (v->dtype == SW_DTYPE_F32) {
            for (size_t j = 0; j < columns; j++)
                ((float *)out)[to + j] = ((const float *)v->values)[from + j * v->column];
        } else if (is_f64) {
            for (size_t j = 0; j < columns; j++)
                ((double *)out)[to + j] = element(v, from + j * v->column);
        } else {
            for (size_t j = 0; j < columns; j++)
                ((float *)out)[to + j] = (float)element(v, from + j * v->column);
        }
    }
}

/* What C starts with: what is there or 0, and bias. */
static void start_row(const sw_product *p, size_t r, size_t c, size_t columns)
{
    size_t at = r * p->c_stride + c;

    for (size_t j = 0; j < columns; j++) {
        if (p->c_type == SW_DTYPE_F64) {
            double *out = (double *)p->c + at + j;
            double base = p->accumulate ? *out : 0;
            *out = base + (p->bias == NULL ? 0 : ((const double *)p->bias)[c + j]);
        } else {
            float *out = (float *)p->c + at + j;
            float base = p->accumulate ? *out : 0;
            *out = base + (p->bias == NULL ? 0 : ((const float *)p->bias)[c + j]);
        }
    }
}

static void do_tile(const tiles_args *t, size_t index)
{
    const sw_product *p = t->p;
    bool is_f64 = p->c_type == SW_DTYPE_F64;
    size_t bytes = sw_bytes_of(p->c_type);
    size_t r = index / t->n_across * MOST_M;
    size_t c = index % t->n_across * MOST_N;
    size_t rows = less(p->m - r, MOST_M);
    size_t columns = less(p->n - c, MOST_N);
    view a = view_of(p->a, p->a_type, p->a_stride, p->a_is_transposed);
    view b = view_of(p->b, p->b_type, p->b_stride, p->b_is_transposed);
    char *a_block = t->workspace + sw_kernel_thread_index() * thread_bytes(p);
    char *b_block = a_block + (size_t)MOST_M * MOST_K * bytes;

    for (size_t i = 0; i < rows; i++)
        start_row(p, r + i, c, columns);
    for (size_t k = 0; k < p->k; k += MOST_K) {
        size_t depth = less(p->k - k, MOST_K);
        copy_block(&a, r, k, rows, depth, is_f64, a_block);
        copy_block(&b, k, c, depth, columns, is_f64, b_block);
        sw_tile_args tile = {
            .n = columns,
            .k = depth,
            .a = a_block,
            .b = b_block,
            .c = (char *)p->c + (r * p->c_stride + c) * bytes,
            .a_row = depth,
            .a_column = 1,
            .b_row = columns,
            .c_row = p->c_stride,
            .accumulate = true,
        };
        t->tile(&tile, 0, rows);
    }
}

static void do_tiles(const void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        do_tile(args, i);
}

void sw_product_tiles(const sw_kernel *kernel, const sw_product *product, void *workspace)
{
    size_t n_down = (product->m - 1) / MOST_M + 1;
    size_t n_across = (product->n - 1) / MOST_N + 1;
    tiles_args args = {product, sw_kernel_loop(kernel, product->c_type, SW_LOOP_TILE), n_across, workspace};

    sw_kernel_run_uneven(kernel, do_tiles, &args, n_down * n_across, 1);
}
