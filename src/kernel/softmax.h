/*
 * Softmax over rows, the row sums that a softmax over ranks is made of, and rows divided by their sum. Dims:
 * R rows, C width. A softmax of a row that is -inf throughout gives 0 throughout.
 */
#ifndef SW_KERNEL_SOFTMAX_H
#define SW_KERNEL_SOFTMAX_H

#include "kernel/kernel.h"

typedef struct sw_softmax_args {
    size_t n_rows;
    size_t width;
    const void *x;   /* [R, C] */
    const void *y;   /* backward: [R, C], what the forward gave */
    const void *d_y; /* backward: [R, C] */
    void *out;       /* [R, C], may be x, or d_y in the backward; row sums: [R] */
    const void *max; /* exp sums: [R] */
    double eps;      /* normalise: added to the sums */
    void *sum;       /* normalise: [R], sums with eps; the forward writes them and the backward reads them */
} sw_softmax_args;

void sw_kernel_softmax(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args);
/* out = y * (d_y - sum over c of y * d_y) */
void sw_kernel_softmax_back(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args);

void sw_kernel_row_max(const sw_kernel *kernel, sw_dtype dtype,
                       const sw_softmax_args *args); /* -inf if C is 0 */
/* out[r] = sum over c of exp(x[r, c] - max[r]) */
void sw_kernel_row_exp_sum(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args);

/* out = x / sum, sum = sum over c of x + eps */
void sw_kernel_normalise(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args);
/* out = (d_y - sum over c of y * d_y) / sum */
void sw_kernel_normalise_back(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args);

#endif
