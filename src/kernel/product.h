/*
 * Matrix products: C = A B + bias, or C += A B + bias. Dims: M rows of A and C, N columns of B and C, K.
 *
 *     y  = x W^T    W [out, in] as Hugging Face stores it: b_is_transposed
 *     y  = x W      W [in, out], GPT-2's Conv1D
 *     dx = dy W     dx = dy W^T for Conv1D
 *     dW = dy^T x   a_is_transposed; dW = x^T dy for Conv1D; with `accumulate` over micro-batches
 *
 * Types of (A, B, C): (F32, F32, F32), (F64, F64, F64), (BF16, BF16, F32), (F32, BF16, F32); sums are in C's
 * type, bias has it too. In the last one, with more than a few rows and the library at hand, A is rounded to
 * BF16.
 *
 * Few rows (decode) go through loops of ours that read B once, as it lies; more rows through oneDNN, whose
 * product of a shape is made when the shape is first seen. F64, the reference variant, and a build without
 * oneDNN take the tiles of product_tiles.c.
 */
#ifndef SW_KERNEL_PRODUCT_H
#define SW_KERNEL_PRODUCT_H

#include "kernel/kernel.h"

enum { SW_PRODUCT_FEW_ROWS = 4, SW_PRODUCTS_TOGETHER = 4 };

typedef struct sw_product {
    size_t m;
    size_t n;
    size_t k;
    const void *a;    /* [M, K]; transposed: stored [K, M] */
    const void *b;    /* [K, N]; transposed: stored [N, K]; or what sw_product_pack() made */
    void *c;          /* [M, N]; overlaps nothing */
    const void *bias; /* [N] or NULL */
    size_t a_stride;  /* from stored row to row; 0: no gap */
    size_t b_stride;
    size_t c_stride;
    sw_dtype a_type;
    sw_dtype b_type;
    sw_dtype c_type;
    bool a_is_transposed;
    bool b_is_transposed;
    bool b_is_packed;
    bool accumulate;
} sw_product;

/*
 * Bytes of workspace that a product wants (pointers are not looked at), at an address of malloc's alignment.
 * SW_E_ARGUMENT: a combination of types that there is not, strides that are too small, sizes that overflow.
 */
sw_status sw_product_workspace(sw_kernel *kernel, const sw_product *product, size_t *n_bytes, sw_error *err);

/* The product; the arguments that the workspace was asked for, and pointers. */
sw_status sw_product_run(sw_kernel *kernel, const sw_product *product, void *workspace, sw_error *err);

/*
 * Products of few rows by matrices stored [N, K]: those of one A, with the same m, k and types, may be run
 * together, so that threads begin once and A is made ready once. The workspace is that of any one of them.
 */
bool sw_product_is_of_rows(const sw_product *product);
bool sw_products_are_alike(const sw_product *a, const sw_product *b);
sw_status sw_product_run_together(sw_kernel *kernel, const sw_product *products, size_t n_products,
                                  void *workspace, sw_error *err);

/*
 * B once more in the order that the library likes best, for weights that do not change: its size in bytes,
 * and making it (at an address that is a multiple of 64). It serves products with any M of the same N, K and
 * types; few rows too, though the loops of ours on B as it lies read it as fast.
 */
sw_status sw_product_packed_bytes(sw_kernel *kernel, const sw_product *product, size_t *n_bytes,
                                  sw_error *err);
sw_status sw_product_pack(sw_kernel *kernel, const sw_product *product, void *packed, sw_error *err);

#endif
