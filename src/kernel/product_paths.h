/* The ways of a product, for product.c. Strides are filled in, sizes are not 0, the types fit. */
#ifndef SW_KERNEL_PRODUCT_PATHS_H
#define SW_KERNEL_PRODUCT_PATHS_H

#include "kernel/loops.h"
#include "kernel/product.h"

/*
 * A block of C from blocks of A and B, all of C's type: C = A B or C += A B. A's elements stand a_row and
 * a_column apart, so that it may be read transposed. Items: rows of C.
 */
typedef struct sw_tile_args {
    size_t n;
    size_t k;
    const void *a;
    const void *b; /* [K, N], rows b_row apart */
    void *c;       /* rows c_row apart */
    size_t a_row;
    size_t a_column;
    size_t b_row;
    size_t c_row;
    bool accumulate;
} sw_tile_args;

/*
 * The row loops take a sw_product of at most SW_PRODUCT_FEW_ROWS rows: B stored [N, K] of C's type; stored
 * [N, K] of BF16, with A split; stored [K, N] of either type. A split row of A has 16 elements of even
 * places, then the 16 beside them of odd places, and so on, with zeros at the end.
 */
enum { SW_SPLIT_PAIRS = 16 };

static inline size_t sw_split_place(size_t i)
{
    size_t pair = i / 2;
    return pair + pair / SW_SPLIT_PAIRS * SW_SPLIT_PAIRS + i % 2 * SW_SPLIT_PAIRS;
}

size_t sw_product_tiles_workspace(const sw_kernel *kernel, const sw_product *product);
void sw_product_tiles(const sw_kernel *kernel, const sw_product *product, void *workspace);

/* oneDNN; all of it refuses with SW_E_ARGUMENT in a build without. */
typedef struct sw_library sw_library;
bool sw_library_has(const sw_product *product);
void sw_library_destroy(sw_library *library); /* NULL is fine */
sw_status sw_library_workspace(sw_kernel *kernel, const sw_product *product, size_t *n_bytes, sw_error *err);
sw_status sw_library_run(sw_kernel *kernel, const sw_product *product, void *workspace, sw_error *err);
sw_status sw_library_packed_bytes(sw_kernel *kernel, const sw_product *product, size_t *n_bytes,
                                  sw_error *err);
sw_status sw_library_pack(sw_kernel *kernel, const sw_product *product, void *packed, sw_error *err);

static inline size_t sw_bytes_of(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 ? 8 : dtype == SW_DTYPE_F32 ? 4 : 2;
}

#endif
