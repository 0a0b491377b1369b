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

/* What yarn scales cosines and sines by. */
double sw_yarn_scale(double factor, double mscale);

/* Cosines and sines [positions, half of what turns]; NULL: nothing turns. */
typedef struct sw_rotary {
    sw_tensor *cos;
    sw_tensor *sin;
} sw_rotary;

/*
 * Tables of a config. Under longrope a sequence of more than `limit` positions has others, from its first
 * token on: what was made of a shorter one holds no longer.
 */
typedef struct sw_rotary_pair {
    sw_rotary usual;
    sw_rotary longer; /* beyond the limit */
    uint64_t limit;   /* 0: none */
} sw_rotary_pair;

/* SW_E_FORMAT: a scaling that cannot be run, by key and value. The stack gets a few numbers. */
sw_status sw_rotary_check(const sw_config *config, const sw_rotary_sizes *sizes, sw_stack *stack,
                          sw_error *err);

/* In memory of `stack`; the config was checked. */
sw_status sw_rotary_create(sw_rotary_pair *out, const sw_config *config, const sw_rotary_sizes *sizes,
                           sw_dtype dtype, sw_stack *stack, sw_error *err);

const sw_rotary *sw_rotary_for(const sw_rotary_pair *pair, uint64_t n_positions);

#endif
