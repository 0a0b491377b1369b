/*
 * One step of an optimizer over a flat stretch of parameters, as PyTorch computes it. `clip` is a factor of
 * the gradient, from the global norm; 1 for none.
 *
 *     AdamW: p -= lr * decay * p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *            p -= lr * (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + eps)
 *     SGD:   g += decay * p;  m = momentum * m + g (m = g in step 1);  p -= lr * m
 */
#ifndef SW_KERNEL_OPTIMIZER_H
#define SW_KERNEL_OPTIMIZER_H

#include "kernel/kernel.h"

typedef struct sw_optimizer_args {
    size_t n;
    void *param;
    const void *grad;
    void *m;       /* SGD without momentum: NULL */
    void *v;       /* AdamW */
    uint64_t step; /* from 1 on */
    double lr;
    double decay;
    double beta1; /* SGD: momentum */
    double beta2;
    double eps;
    double clip;
} sw_optimizer_args;

void sw_kernel_adamw(const sw_kernel *kernel, sw_dtype dtype, const sw_optimizer_args *args);
void sw_kernel_sgd(const sw_kernel *kernel, sw_dtype dtype, const sw_optimizer_args *args);

#endif
