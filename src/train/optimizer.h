/*
 * A list of parameters, the norm of all their gradients, and an optimizer over them (kernel/optimizer.h),
 * equal to torch.nn.utils.clip_grad_norm_, and torch.optim.AdamW or torch.optim.SGD. Decay is for what has
 * two dims or more: matrices and embeddings; norms and biases are left alone.
 */
#ifndef SW_TRAIN_OPTIMIZER_H
#define SW_TRAIN_OPTIMIZER_H

#include "kernel/optimizer.h"
#include "tensor/tensor.h"

enum { SW_MOST_MOMENTS = 2 };

typedef enum sw_optimizer_kind {
    SW_OPTIMIZER_ADAMW = 0,
    SW_OPTIMIZER_SGD,
    SW_OPTIMIZER_SGD_MOMENTUM,
    SW_OPTIMIZER_COUNT_
} sw_optimizer_kind;

/* What is known of a kind. A moment is what it keeps of each element from step to step. */
typedef struct sw_optimizer_facts {
    const char *name;                         /* in checkpoints */
    const char *moments[SW_MOST_MOMENTS + 1]; /* how their tensors' names begin there; then NULL */
    void (*update)(const sw_kernel *kernel, sw_dtype dtype, const sw_optimizer_args *args);
} sw_optimizer_facts;

const sw_optimizer_facts *sw_optimizer_facts_of(sw_optimizer_kind kind);
uint32_t sw_optimizer_moments(sw_optimizer_kind kind);

typedef struct sw_optimizer {
    sw_optimizer_kind kind;
    double lr;
    double decay;
    double beta1; /* SGD's momentum */
    double beta2; /* this and eps: AdamW's */
    double eps;
    double clip; /* most that the norm of all gradients may be; 0: no limit */
} sw_optimizer;

#define SW_OPTIMIZER_INIT                                                                                    \
    {                                                                                                        \
        SW_OPTIMIZER_ADAMW, 1e-3, 0.01, 0.9, 0.999, 1e-8, 0.0                                                \
    }

/* One parameter: dense elements of F32 or F64, a stretch of a storage that its gradient is lent to. One that
 * nothing flowed back to (the storage's has_gradient is false) is passed over, as torch does. */
typedef struct sw_trained {
    const char *fqn;
    const sw_storage *storage;
    uint32_t n_dims;
    uint64_t n_elems;
    void *value;
    void *gradient;
    void *moments[SW_MOST_MOMENTS]; /* zero before the first step; NULL: the optimizer has no such one */
} sw_trained;

typedef struct sw_trained_list {
    sw_trained *params; /* in model order */
    size_t n_params;
} sw_trained_list;

bool sw_trained_decays(const sw_trained *param);

/* The norm of all gradients as one vector, in double. */
double sw_trained_norm(const sw_trained_list *list, const sw_kernel *kernel);
double sw_trained_norm_of(double square_sum);

/* One step, number `step` from 1 on, with gradients whose norm is `norm`. */
void sw_trained_step(const sw_trained_list *list, const sw_kernel *kernel, const sw_optimizer *optimizer,
                     double norm, uint64_t step);

#endif
