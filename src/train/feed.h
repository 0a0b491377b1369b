/*
 * Tokens into a net: one pass over rows of equal length, whose tokens follow one another from some position
 * on, or have positions of their own.
 */
#ifndef SW_TRAIN_FEED_H
#define SW_TRAIN_FEED_H

#include "nn/net.h"

typedef struct sw_feed {
    uint64_t n_rows;
    uint64_t n_tokens;      /* of a row */
    uint64_t first;         /* position of a row's first token */
    const int32_t *ids;     /* [rows, tokens], borrowed until the step ends */
    const int32_t *targets; /* [rows, tokens]: what follows, -1 to be left out; NULL: no loss is wanted */
    /* [rows, tokens]: of tokens of a longer row, -1: padding; NULL: from `first` on. */
    const int32_t *positions;
    uint64_t n_whole; /* tokens of that row */
} sw_feed;

/* Tokens and positions of a pass. A failure is the step's. */
void sw_feed_pass(sw_pass *out, const sw_net *net, sw_step *step, const sw_feed *feed);

/* A matrix of the step around `values`. */
const sw_tensor *sw_feed_matrix(sw_step *step, const int32_t *values, uint64_t n_rows, uint64_t n_columns);

/* The elements of a scalar, F32 or F64. */
double sw_scalar_of(const sw_tensor *scalar);

/* Tokens that a sequence may have: as many as 32 bits count where the config bounds nothing (ALiBi). */
uint64_t sw_most_positions(const sw_net *net);

/* Targets that count. */
uint64_t sw_count_targets(const int32_t *targets, uint64_t n);

#endif
