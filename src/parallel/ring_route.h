/*
 * Which blocks of keys go how far round the ring. Block j starts at rank j, and in step s it is at rank
 * j + s. It goes on as long as a rank ahead sees some of it, so that what a causal mask or a window hides is
 * neither sent nor looked at. Pure arithmetic, on what all ranks know of each other's positions.
 */
#ifndef SW_PARALLEL_RING_ROUTE_H
#define SW_PARALLEL_RING_ROUTE_H

#include "kernel/sight.h"

/* The tokens of a rank in two halves, since in balanced order those lie far apart. */
enum { SW_RING_HALVES = 2 };

typedef struct sw_ring_tokens {
    sw_position_range queries[SW_RING_HALVES];
    sw_position_range keys[SW_RING_HALVES]; /* padding left out */
} sw_ring_tokens;

typedef struct sw_ring_mask {
    bool is_causal;
    uint32_t window; /* 0: none */
} sw_ring_mask;

/* Widen the ranges by one row of `n` tokens; begin with sw_ring_no_tokens(). */
sw_ring_tokens sw_ring_no_tokens(void);
void sw_ring_tokens_add(sw_ring_tokens *tokens, const int32_t *q_positions, const int32_t *k_positions,
                        uint64_t n);

/* May queries of one rank see keys of the other? */
bool sw_ring_sees(const sw_ring_mask *mask, const sw_ring_tokens *queries, const sw_ring_tokens *keys);

/* How many steps each block goes, 0 .. n - 1; `tokens` and `reach` of all `n` ranks. Returns the most. */
uint32_t sw_ring_reach(const sw_ring_mask *mask, const sw_ring_tokens *tokens, uint32_t n, uint32_t *reach);

#endif
