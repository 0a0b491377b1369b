/*
 * Cross-entropy over rows of logits. Dims: R rows, V vocabulary. A row whose target is negative is ignored:
 * its loss and gradient are 0.
 *
 *     loss[r] = max + log(sum of exp(x - max)) - x[target]
 *     d_x[r, v] = factor * (exp(x[v] - max) / sum - (v == target))
 *
 * The pieces are what a vocabulary that is cut over ranks needs: each rank takes the maximum and the sum of
 * its part (softmax.h), they are reduced, and `first` says where its part begins.
 */
#ifndef SW_KERNEL_LOSS_H
#define SW_KERNEL_LOSS_H

#include "kernel/kernel.h"

typedef struct sw_loss_args {
    size_t n_rows;
    size_t width;           /* V, or the part of it that is here */
    int64_t first;          /* the token that column 0 stands for */
    const void *x;          /* [R, V] */
    const int32_t *targets; /* [R]: tokens of the whole vocabulary */
    double factor;          /* of the gradient: 1 / the count of valid tokens */
    void *max;              /* [R] */
    void *sum;              /* [R] */
    void *target_x;         /* [R]: x[target] where this part holds it, else 0 */
    void *loss;             /* [R] */
    void *d_x;              /* [R, V]; may be x */
} sw_loss_args;

/* The whole: max, sum, target_x and loss. Targets of the vocabulary or negative. */
void sw_kernel_cross_entropy(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args);
/* Gradient from max and sum: of the whole or of a part. */
void sw_kernel_cross_entropy_back(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args);

/* The pieces that are not in softmax.h: target_x; loss of rows from reduced max, sum and target_x. */
void sw_kernel_target_logits(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args);
void sw_kernel_loss_of_sums(sw_dtype dtype, const sw_loss_args *args);

#endif
