/*
 * Do ranks hold the same rows of two dims? What placement rules (tensor/rule.h) ask of layouts.
 */
#ifndef SW_TENSOR_HELD_H
#define SW_TENSOR_HELD_H

#include "mesh/layout.h"

/* A dim of a tensor, each row of which stands for `rows` of what two tensors are compared by. */
typedef struct sw_held_dim {
    const sw_tensor_layout *layout;
    uint32_t dim;
    uint64_t rows;
} sw_held_dim;

/* Does every rank hold the same part of both dims? They are over the same axes. */
bool sw_held_agree(const sw_held_dim *a, const sw_held_dim *b);

/* The same, or one row of `b` and, of what that stands for, a part of `a`. */
bool sw_held_serves(const sw_held_dim *a, const sw_held_dim *b);

#endif
