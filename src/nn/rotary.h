/*
 * Tables of the rotary embedding: frequencies as the config's rope_scaling has them, then cosines and sines
 * by position.
 */
#ifndef SW_NN_ROTARY_H
#define SW_NN_ROTARY_H

#include "model/config.h"
#include "tensor/tensor.h"

/* What turns: `width` elements of a head, over `n_positions` positions. */
typedef struct sw_rotary_sizes {
    uint64_t width;
    uint64_t n_positions;
    uint64_t trained; /* positions of the config */
} sw_rotary_sizes;

/* Elements of a head of `head_dim` that turn. */
uint64_t sw_rotary_width(const sw_config *config, uint64_t head_dim);

/* The tables, in memory of `stack`. SW_E_FORMAT: a scaling that cannot be run, by key and value. */
sw_status sw_rotary_create(sw_tensor **cos, sw_tensor **sin, const sw_config *config,
                           const sw_rotary_sizes *sizes, sw_dtype dtype, sw_stack *stack, sw_error *err);

#endif
