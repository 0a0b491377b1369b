/* What the loops of attention.c do with a tile of scores [rows, n]; items: rows. */
#ifndef SW_KERNEL_ATTENTION_TILE_H
#define SW_KERNEL_ATTENTION_TILE_H

#include "kernel/loops.h"
#include "kernel/sight.h"

/*
 * SW_LOOP_SCORE takes q.k and leaves exp(x - max), with `max` and `sum` brought up to date and `out`
 * rescaled. SW_LOOP_SCORE_END divides `out` by the sum, the sink counted, into `result`, and writes the lse.
 * SW_LOOP_SCORE_JOIN brings `max`, `sum` and `out` of some keys up to date with those of others.
 * SW_LOOP_SCORE_BACK takes q.k and, in `d_scores`, d_out.v; it leaves exp(x - lse) and the gradient of q.k.
 */
typedef struct sw_score_args {
    size_t n;
    void *scores;   /* rows `stride` apart */
    void *d_scores; /* rows `stride` apart */
    size_t stride;
    double scale;
    double soft_cap;
    double slope;
    double rounded_alibi; /* kernel/attention.h */
    bool is_masked;       /* some keys may be hidden */
    bool is_causal;
    uint32_t window;
    const int32_t *q_positions; /* [rows] */
    const int32_t *k_positions; /* [n] */
    void *max;                  /* [rows] */
    void *sum;                  /* [rows] */
    void *out;                  /* [rows, width] */
    size_t width;
    const void *sink; /* one value or NULL */
    void *result;     /* rows `result_row` apart */
    size_t result_row;
    void *lse;         /* [rows] */
    const void *delta; /* [rows]: d_out.out */
} sw_score_args;

typedef struct sw_join_args {
    void *max; /* [rows] */
    void *sum; /* [rows] */
    void *out; /* [rows, width] */
    const void *from_max;
    const void *from_sum;
    const void *from_out;
    size_t width;
} sw_join_args;

#endif
