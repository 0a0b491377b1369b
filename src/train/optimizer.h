/*
 * A list of parameters, the norm of all their gradients, and AdamW over them (kernel/optimizer.h), equal to
 * torch.nn.utils.clip_grad_norm_ and torch.optim.AdamW. Decay is for what has two dims or more: matrices and
 * embeddings; norms and biases are left alone.
 */
#ifndef SW_TRAIN_OPTIMIZER_H
#define SW_TRAIN_OPTIMIZER_H

#include "kernel/kernel.h"
#include "tensor/tensor.h"

/* One parameter: dense elements of F32 or F64, a stretch of a storage that its gradient is lent to. One that
 * nothing flowed back to (the storage's has_gradient is false) is passed over, as torch does. */
typedef struct sw_trained {
    const char *fqn;
    const sw_storage *storage;
    uint32_t n_dims;
    uint64_t n_elems;
    void *value;
    void *gradient;
    void *m; /* zero before the first step */
    void *v;
} sw_trained;

typedef struct sw_trained_list {
    sw_trained *params; /* in model order */
    size_t n_params;
} sw_trained_list;

typedef struct sw_adamw {
    double lr;
    double decay;
    double beta1;
    double beta2;
    double eps;
    double clip; /* most that the norm of all gradients may be; 0: no limit */
} sw_adamw;

#define SW_ADAMW_INIT                                                                                        \
    {                                                                                                        \
        1e-3, 0.01, 0.9, 0.999, 1e-8, 0.0                                                                    \
    }

bool sw_trained_decays(const sw_trained *param);

/* The norm of all gradients as one vector, in double. */
double sw_trained_norm(const sw_trained_list *list, const sw_kernel *kernel);
double sw_trained_norm_of(double square_sum);

/* One step of AdamW, number `step` from 1 on, with gradients whose norm is `norm`. */
void sw_trained_step(const sw_trained_list *list, const sw_kernel *kernel, const sw_adamw *adamw, double norm,
                     uint64_t step);

#endif
