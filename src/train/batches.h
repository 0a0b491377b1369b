/*
 * Which tokens make up which sequence of a training run. The file is cut into windows of equal length, each
 * with one token more, so that every place has the token that follows as its target. An epoch takes every
 * window once, in an order that depends on seed and epoch alone: sequence number n of a run is the same
 * whatever the size of batches, the number of ranks, and where a run was taken up again.
 */
#ifndef SW_TRAIN_BATCHES_H
#define SW_TRAIN_BATCHES_H

#include "train/tokens.h"

typedef struct sw_batches {
    const sw_tokens *tokens; /* borrowed */
    uint64_t seed;
    uint32_t length; /* of a sequence */
    uint32_t n_windows;
    uint32_t *order; /* of the windows in `epoch` */
    uint64_t epoch;  /* UINT64_MAX: none yet */
} sw_batches;        /* all zero is none */

/* SW_E_FORMAT: fewer tokens than one sequence needs; SW_E_LIMIT: more than 2^32 windows; SW_E_NO_MEMORY. */
sw_status sw_batches_create(sw_batches *out, const sw_tokens *tokens, uint32_t length, uint64_t seed,
                            const char *path, sw_error *err);
void sw_batches_clear(sw_batches *batches);

/* The window of sequence `number`, counted from 0 over all epochs. */
uint32_t sw_batches_window(sw_batches *batches, uint64_t number);

/* Sequences number .. number + n - 1: ids [n, length] and the targets of each place. */
void sw_batches_fill(sw_batches *batches, uint64_t number, uint32_t n, int32_t *ids, int32_t *targets);

#endif
