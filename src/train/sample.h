/*
 * The next token from a row of logits. What may follow is narrowed as Hugging Face transformers does it, in
 * this order: temperature, the `top_k` likeliest, of these the fewest that have `top_p` of the probability.
 * Of equal logits the lower token comes first. Number n of a run follows from seed and n alone.
 */
#ifndef SW_TRAIN_SAMPLE_H
#define SW_TRAIN_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "shardwright/error.h"

typedef struct sw_sampling {
    double temperature; /* 0: always the likeliest */
    uint32_t top_k;     /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
} sw_sampling;

#define SW_SAMPLING_GREEDY                                                                                   \
    {                                                                                                        \
        0.0, 0, 1.0, 0                                                                                       \
    }

/* Room for narrowing a vocabulary. */
typedef struct sw_sampler {
    sw_sampling how;
    size_t vocabulary;
    double *weights; /* of every token; NULL for greedy */
    int32_t *heap;
} sw_sampler;

/* SW_E_NO_MEMORY */
sw_status sw_sampler_create(sw_sampler *out, const sw_sampling *how, size_t vocabulary, sw_error *err);
void sw_sampler_clear(sw_sampler *sampler);

/* Token `number` of the run; -1: the logits have no largest one (NaN). */
int32_t sw_sampler_next(sw_sampler *sampler, const float *logits, uint64_t number);

#endif
