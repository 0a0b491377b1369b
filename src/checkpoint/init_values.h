/*
 * What the elements of one parameter begin as, by a rule, and their bytes in a dtype. An element depends on
 * the rule, the parameter's random numbers and its index alone, and is a float that is narrowed last: a BF16
 * model is the F32 model of the same seed, rounded.
 */
#ifndef SW_CHECKPOINT_INIT_VALUES_H
#define SW_CHECKPOINT_INIT_VALUES_H

#include "checkpoint/random.h"
#include "shardwright/model.h"

typedef enum sw_init_kind {
    SW_INIT_CONSTANT = 0, /* a */
    SW_INIT_NORMAL,       /* of mean 0 and deviation a */
    SW_INIT_UNIFORM,      /* from -a to a */
    SW_INIT_LOG_COUNT,    /* log 1, log 2, ... along the last dim, which is `period` long */
    SW_INIT_LOG_UNIFORM,  /* log of what is uniform from a to b */
    SW_INIT_TIME_STEP     /* its softplus is a step whose logarithm is uniform from log a to log b */
} sw_init_kind;

typedef struct sw_init_rule {
    sw_init_kind kind;
    double a;
    double b;
    uint64_t period;
} sw_init_rule;

/*
 * Bytes of the `n` elements from `first` on, as a safetensors file has them. `dtype` is F32, BF16 or F16;
 * `out` has room for n of it.
 */
void sw_init_fill(const sw_init_rule *rule, const sw_random *random, sw_dtype dtype, uint64_t first, size_t n,
                  uint8_t *out);

#endif
