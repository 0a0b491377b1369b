/* Products: what is asked is checked, strides are filled in, and a way is chosen (kernel/product.h). */
#include "kernel/product.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "kernel/context.h"
#include "kernel/convert.h"
#include "kernel/elementwise.h"
#include "kernel/product_paths.h"

typedef struct type_row {
    sw_dtype a;
    sw_dtype b;
    sw_dtype c;
} type_row;

static const type_row combinations[] = {
    {SW_DTYPE_F32,  SW_DTYPE_F32,  SW_DTYPE_F32},
    {SW_DTYPE_F64,  SW_DTYPE_F64,  SW_DTYPE_F64},
    {SW_DTYPE_BF16, SW_DTYPE_BF16, SW_DTYPE_F32},
    {SW_DTYPE_F32,  SW_DTYPE_BF16, SW_DTYPE_F32},
};

enum { ALIGNMENT = 64 };

static size_t round_up(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The first aligned byte at or after `memory`. */
static void *aligned(void *memory)
{
    uintptr_t gap = (uintptr_t)memory % ALIGNMENT;
    return (char *)memory + (gap == 0 ? 0 : ALIGNMENT - gap);
}

static sw_status check_types(const sw_product *p, sw_error *err)
{
    for (size_t i = 0; i < SW_COUNT(combinations); i++) {
        const type_row *row = &combinations[i];
        if (row->a == p->a_type && row->b == p->b_type && row->c == p->c_type)
            return SW_OK;
    }
    return SW_FAIL(err, SW_E_ARGUMENT, "convert to F32 first", "no product of types (%d, %d) into %d",
                   (int)p->a_type, (int)p->b_type, (int)p->c_type);
}

/* Fill in a stride of `rows` stored rows of `width`; the whole must have a size. */
static sw_status settle_stride(const char *matrix, size_t rows, size_t width, size_t *stride, sw_error *err)
{
    uint64_t n_bytes = 0;

    if (*stride == 0)
        *stride = width == 0 ? 1 : width;
    if (*stride < width) {
        return SW_FAIL(err, SW_E_ARGUMENT, "rows may not overlap",
                       "product: rows of %s are %zu wide and only %zu apart", matrix, width, *stride);
    }
    if (!sw_mul_u64(rows, *stride, &n_bytes) || !sw_mul_u64(n_bytes, sizeof(double), &n_bytes) ||
        n_bytes > PTRDIFF_MAX) {
        return SW_FAIL(err, SW_E_LIMIT, "", "product: %s of %zu rows of %zu is too large", matrix, rows,
                       *stride);
    }
    return SW_OK;
}

static sw_status settle(const sw_product *given, sw_product *out, sw_error *err)
{
    sw_product p = *given;

    SW_TRY(check_types(&p, err));
    SW_TRY(
        settle_stride("A", p.a_is_transposed ? p.k : p.m, p.a_is_transposed ? p.m : p.k, &p.a_stride, err));
    SW_TRY(
        settle_stride("B", p.b_is_transposed ? p.n : p.k, p.b_is_transposed ? p.k : p.n, &p.b_stride, err));
    SW_TRY(settle_stride("C", p.m, p.n, &p.c_stride, err));
    *out = p;
    return SW_OK;
}

static bool is_empty(const sw_product *p)
{
    return p->m == 0 || p->n == 0;
}

/* Loops that read B once, as it lies: A is F32 or F64, row by row. */
static bool is_for_row_loops(const sw_product *p)
{
    return p->m <= SW_PRODUCT_FEW_ROWS && !p->a_is_transposed && !p->b_is_packed &&
           p->a_type != SW_DTYPE_BF16;
}

static bool is_for_library(const sw_kernel *kernel, const sw_product *p)
{
    return kernel->variant != SW_KERNEL_REFERENCE && p->k != 0 && sw_library_has(p);
}

/* A packed B that the library did not pack is a copy without gaps. */
static sw_product unpacked(const sw_product *p)
{
    sw_product plain = *p;

    if (plain.b_is_packed)
        plain.b_stride = plain.b_is_transposed ? plain.k : plain.n;
    plain.b_is_packed = false;
    return plain;
}

static bool wants_split_a(const sw_product *p)
{
    return p->b_is_transposed && p->b_type == SW_DTYPE_BF16 && p->k != 0;
}

static size_t split_width(const sw_product *p)
{
    enum { GROUP = 2 * SW_SPLIT_PAIRS };
    return (p->k + GROUP - 1) / GROUP * GROUP;
}

static void split_row(const float *a, size_t n, float *out)
{
    enum { GROUP = 2 * SW_SPLIT_PAIRS };
    size_t whole = n / GROUP * GROUP;

    for (size_t k = 0; k < whole; k += GROUP) {
        for (size_t i = 0; i < SW_SPLIT_PAIRS; i++) {
            out[k + i] = a[k + 2 * i];
            out[k + SW_SPLIT_PAIRS + i] = a[k + 2 * i + 1];
        }
    }
    if (whole < n)
        memset(out + whole, 0, GROUP * sizeof *out);
    for (size_t k = whole; k < n; k++)
        out[sw_split_place(k)] = a[k];
}

static void split_a(const sw_product *p, float *out)
{
    for (size_t r = 0; r < p->m; r++)
        split_row((const float *)p->a + r * p->a_stride, p->k, out + r * split_width(p));
}

/*
 * B stored [K, N] is read in whole rows, for stretches of them come at half the speed: K is cut into parts,
 * which are summed as the leaves of a tree, the same one for any number of threads. A block does a part of
 * the tree, so that cores have little to read of each other's.
 */
enum { PARTS = 8, PANEL = 4096 /* columns whose sums stay in the innermost cache */ };

typedef struct part_args {
    const sw_product *product;
    float *sums;    /* [PARTS, M, N] */
    size_t n_parts; /* of a block */
    sw_block_fn *loop;
    sw_block_fn *add;
} part_args;

static void sum_part(const part_args *a, size_t i)
{
    sw_product p = *a->product;
    size_t first = p.k / PARTS * i + (p.k % PARTS < i ? p.k % PARTS : i);

    p.a = (const float *)p.a + first;
    p.b = (const char *)p.b + first * p.b_stride * sw_bytes_of(p.b_type);
    p.c = a->sums + i * p.m * p.n;
    p.c_stride = p.n;
    p.k = p.k / PARTS + (i < p.k % PARTS);
    p.bias = NULL;
    p.accumulate = false;
    for (size_t j = 0; j < p.n; j += PANEL)
        a->loop(&p, j, p.n - j < PANEL ? p.n : j + PANEL);
}

/* The sums of n parts from `first` on, n a power of two, in those of `first`: elements begin .. end-1. */
static void add_parts(const part_args *a, size_t first, size_t n, size_t step, size_t begin, size_t end)
{
    size_t width = a->product->m * a->product->n;

    for (; step < n; step *= 2) {
        for (size_t i = first; i < first + n; i += 2 * step) {
            float *sums = a->sums + i * width;
            sw_map_args sum = {.a = sums, .b = sums + step * width, .out = sums};
            a->add(&sum, begin, end);
        }
    }
}

static void sum_parts(const void *args, size_t begin, size_t end)
{
    const part_args *a = args;

    for (size_t block = begin; block < end; block++) {
        size_t first = block * a->n_parts;
        for (size_t i = 0; i < a->n_parts; i++)
            sum_part(a, first + i);
        add_parts(a, first, a->n_parts, 1, 0, a->product->m * a->product->n);
    }
}

/* Columns begin .. end-1 of C from the parts of all blocks. */
static void join_parts(const void *args, size_t begin, size_t end)
{
    const part_args *a = args;
    const sw_product *p = a->product;
    const float *bias = p->bias;

    for (size_t r = 0; r < p->m; r++) {
        float *c = (float *)p->c + r * p->c_stride;
        const float *sums = a->sums + r * p->n;
        add_parts(a, 0, PARTS, a->n_parts, r * p->n + begin, r * p->n + end);
        for (size_t j = begin; j < end; j++)
            c[j] = (p->accumulate ? c[j] : 0) + (bias == NULL ? 0 : bias[j]) + sums[j];
    }
}

static bool wants_parts(const sw_product *p)
{
    bool has_room = p->n <= PTRDIFF_MAX / (sizeof(float) * PARTS * SW_PRODUCT_FEW_ROWS) - ALIGNMENT;
    return !p->b_is_transposed && p->c_type == SW_DTYPE_F32 && p->k >= PARTS && has_room;
}

static size_t rows_workspace(const sw_kernel *kernel, const sw_product *p)
{
    size_t n = wants_parts(p)     ? PARTS * p->m * p->n
               : wants_split_a(p) ? kernel->n_threads * p->m * split_width(p)
                                  : 0;
    return n == 0 ? 0 : ALIGNMENT + n * sizeof(float);
}

static void run_in_out(const sw_kernel *kernel, const sw_product *p, void *workspace)
{
    sw_block_fn *loop = sw_kernel_loop(kernel, p->c_type, SW_LOOP_ROW_PRODUCT_IN_OUT);
    part_args args = {p, aligned(workspace), PARTS, loop, sw_kernel_loop(kernel, p->c_type, SW_LOOP_ADD)};

    if (!wants_parts(p)) {
        sw_kernel_run(kernel, loop, p, p->n, sw_kernel_column_grain(kernel, p->n));
        return;
    }
    while (PARTS / args.n_parts < kernel->n_threads && args.n_parts > 1)
        args.n_parts /= 2;
    sw_kernel_run(kernel, sum_parts, &args, PARTS / args.n_parts, 1);
    sw_kernel_run(kernel, join_parts, &args, p->n, sw_kernel_column_grain(kernel, p->n));
}

typedef struct columns_args {
    const sw_product *products;
    size_t n_products;
    float *split; /* NULL, or of each thread: A, in the order that the loop reads it in */
    sw_block_fn *loop;
} columns_args;

/* Columns begin .. end-1 of all products, one behind the other. */
static void run_columns(const void *args, size_t begin, size_t end)
{
    const columns_args *a = args;
    float *split = NULL;

    if (a->split != NULL) { /* for itself: to read it from the core of another one takes longer */
        split = a->split + sw_kernel_thread_index() * a->products->m * split_width(a->products);
        split_a(a->products, split);
    }
    for (size_t i = 0; i < a->n_products && end > 0; i++) {
        sw_product p = a->products[i];
        if (split != NULL) {
            p.a = split;
            p.a_stride = split_width(&p);
        }
        if (begin < p.n)
            a->loop(&p, begin, end < p.n ? end : p.n);
        begin -= begin < p.n ? begin : p.n;
        end -= end < p.n ? end : p.n;
    }
}

/* Columns of stored [N, K] are made each by itself, so that a thread's share is one stretch of memory. */
static void run_stored_rows(const sw_kernel *kernel, const sw_product *p, size_t n_products, void *workspace)
{
    bool is_split = wants_split_a(p);
    sw_loop loop = is_split ? SW_LOOP_ROW_PRODUCT_BF16 : SW_LOOP_ROW_PRODUCT;
    columns_args args = {p, n_products, is_split ? aligned(workspace) : NULL,
                         sw_kernel_loop(kernel, p->c_type, loop)};
    size_t n = 0;

    for (size_t i = 0; i < n_products; i++)
        n += p[i].n;
    if (n > 0)
        sw_kernel_run(kernel, run_columns, &args, n, (n - 1) / kernel->n_threads + 1);
}

/* What the library is given for (F32, BF16): A in BF16 without gaps. */
static sw_product with_short_a(const sw_product *p)
{
    sw_product out = *p;

    if (p->a_type != p->b_type) {
        out.a_type = SW_DTYPE_BF16;
        out.a_stride = p->a_is_transposed ? p->m : p->k;
    }
    return out;
}

static size_t short_a_bytes(const sw_product *p)
{
    return p->a_type == p->b_type ? 0 : round_up(p->m * p->k * sizeof(uint16_t));
}

static void shorten_a(const sw_kernel *kernel, const sw_product *p, uint16_t *out)
{
    size_t rows = p->a_is_transposed ? p->k : p->m;
    size_t width = p->a_is_transposed ? p->m : p->k;
    const float *a = p->a;

    if (p->a_stride == width) {
        sw_kernel_to_bf16(kernel, a, out, rows * width);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        sw_kernel_to_bf16(kernel, a + r * p->a_stride, out + r * width, width);
}

sw_status sw_product_workspace(sw_kernel *kernel, const sw_product *product, size_t *n_bytes, sw_error *err)
{
    sw_product p;
    size_t n = 0;

    SW_TRY(settle(product, &p, err));
    if (is_empty(&p) || is_for_row_loops(&p)) {
        *n_bytes = is_empty(&p) ? 0 : rows_workspace(kernel, &p);
        return SW_OK;
    }
    if (is_for_library(kernel, &p)) {
        sw_product given = with_short_a(&p);
        SW_TRY(sw_library_workspace(kernel, &given, &n, err));
        *n_bytes = ALIGNMENT + short_a_bytes(&p) + n;
        return SW_OK;
    }
    *n_bytes = ALIGNMENT + sw_product_tiles_workspace(kernel, &p);
    return SW_OK;
}

sw_status sw_product_run(sw_kernel *kernel, const sw_product *product, void *workspace, sw_error *err)
{
    sw_product p;

    SW_TRY(settle(product, &p, err));
    if (is_empty(&p))
        return SW_OK;
    if (is_for_row_loops(&p)) {
        if (p.b_is_transposed)
            run_stored_rows(kernel, &p, 1, workspace);
        else
            run_in_out(kernel, &p, workspace);
        return SW_OK;
    }
    char *room = aligned(workspace);
    if (is_for_library(kernel, &p)) {
        sw_product given = with_short_a(&p);
        if (given.a_type != p.a_type) {
            shorten_a(kernel, &p, (uint16_t *)(void *)room);
            given.a = room;
        }
        return sw_library_run(kernel, &given, room + short_a_bytes(&p), err);
    }
    p = unpacked(&p);
    sw_product_tiles(kernel, &p, room);
    return SW_OK;
}

bool sw_product_is_of_rows(const sw_product *product)
{
    return is_for_row_loops(product) && product->b_is_transposed;
}

bool sw_products_are_alike(const sw_product *a, const sw_product *b)
{
    return sw_product_is_of_rows(a) && sw_product_is_of_rows(b) && a->m == b->m && a->k == b->k &&
           a->a == b->a && a->a_stride == b->a_stride && a->a_type == b->a_type && a->b_type == b->b_type &&
           a->c_type == b->c_type;
}

sw_status sw_product_run_together(sw_kernel *kernel, const sw_product *products, size_t n_products,
                                  void *workspace, sw_error *err)
{
    sw_product settled[SW_PRODUCTS_TOGETHER];

    if (n_products > SW_PRODUCTS_TOGETHER) {
        return SW_FAIL(err, SW_E_ARGUMENT, "run fewer", "%zu products together are more than %d", n_products,
                       (int)SW_PRODUCTS_TOGETHER);
    }
    for (size_t i = 0; i < n_products; i++) {
        SW_TRY(settle(&products[i], &settled[i], err));
        if (!sw_products_are_alike(&settled[0], &settled[i])) {
            return SW_FAIL(err, SW_E_ARGUMENT, "run them one by one",
                           "product %zu of those together has another A, or many rows", i);
        }
    }
    if (n_products > 0 && settled[0].m > 0)
        run_stored_rows(kernel, settled, n_products, workspace);
    return SW_OK;
}

sw_status sw_product_packed_bytes(sw_kernel *kernel, const sw_product *product, size_t *n_bytes,
                                  sw_error *err)
{
    sw_product p;

    SW_TRY(settle(product, &p, err));
    if (p.n != 0 && is_for_library(kernel, &p)) {
        sw_product given = with_short_a(&p);
        return sw_library_packed_bytes(kernel, &given, n_bytes, err);
    }
    *n_bytes = p.n * p.k * sw_bytes_of(p.b_type);
    return SW_OK;
}

sw_status sw_product_pack(sw_kernel *kernel, const sw_product *product, void *packed, sw_error *err)
{
    sw_product p;

    SW_TRY(settle(product, &p, err));
    if (p.n != 0 && is_for_library(kernel, &p)) {
        sw_product given = with_short_a(&p);
        return sw_library_pack(kernel, &given, packed, err);
    }
    size_t bytes = sw_bytes_of(p.b_type);
    size_t rows = p.b_is_transposed ? p.n : p.k;
    size_t width = p.b_is_transposed ? p.k : p.n;
    for (size_t r = 0; r < rows && width != 0; r++)
        memcpy((char *)packed + r * width * bytes, (const char *)p.b + r * p.b_stride * bytes, width * bytes);
    return SW_OK;
}
