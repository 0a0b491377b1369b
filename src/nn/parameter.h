/*
 * Parameters of a net: named, shaped and stored as in the checkpoint, each a tensor whose gradient lies
 * beside it. Shapes are those of what this rank holds: the whole at first, and whatever it is cut to before
 * memory is taken.
 */
#ifndef SW_NN_PARAMETER_H
#define SW_NN_PARAMETER_H

#include "family/decoder.h"
#include "tensor/tensor.h"

typedef struct sw_parameter {
    const char *fqn;          /* in the checkpoint */
    uint32_t source;          /* its number in the model; UINT32_MAX: a stack, which no file has */
    const sw_family_row *row; /* role, form and layout */
    sw_slot slot;
    bool is_bias;
    int32_t layer;   /* -1: none */
    int32_t expert;  /* -1: none */
    sw_dtype stored; /* in the checkpoint */
    sw_dtype dtype;  /* in memory: activations', or what is stored where products read that */
    uint32_t n_dims;
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    sw_tensor *tensor;          /* NULL until there is memory */
    bool is_frozen;             /* never trained */
    bool is_deferred;           /* a bias that is added behind the module, by whoever wraps it */
    struct sw_parameter *stack; /* one of several: `index` in the stack's first dim; NULL: by itself */
    uint64_t index;             /* of a stack: how many it has */
} sw_parameter;

/* What fills a slot. Weights of experts or heads, where each has its own, are stacked: [E, out, in]. */
typedef struct sw_held {
    sw_parameter *weight; /* NULL: the family has none */
    sw_parameter *bias;
} sw_held;

/* The tensor of a parameter that may be missing. */
static inline const sw_tensor *sw_tensor_of(const sw_parameter *parameter)
{
    return parameter == NULL ? NULL : parameter->tensor;
}

#endif
