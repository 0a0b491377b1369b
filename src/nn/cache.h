/*
 * Keys and values of the tokens that went before, for generation: per layer a tensor each, positions once.
 * All rows of a batch have the same length; padding has position -1.
 *
 * A cache may be one of several parts. Then each part is given its own tokens in the first pass, and the same
 * ones as all others in those that follow, which are dealt out in turn: token t goes to part t mod n_parts.
 */
#ifndef SW_NN_CACHE_H
#define SW_NN_CACHE_H

#include "tensor/step.h"

typedef struct sw_cache {
    sw_stack *memory;
    uint32_t n_layers;
    uint64_t n_batch;
    uint64_t capacity;   /* tokens */
    uint32_t part;       /* of n_parts */
    uint32_t n_parts;    /* 1: it is the whole */
    uint64_t n_tokens;   /* of the sequence, that are in its parts: where the next pass begins */
    uint64_t n_here;     /* that are in this part, padding included */
    uint64_t n_new;      /* that the pass at work adds to the sequence */
    uint64_t n_new_here; /* to this part: the pass's first_new, and each n_parts behind it */
    uint64_t first_new;
    bool is_alike;        /* that pass has the same tokens in all parts */
    sw_tensor **keys;     /* a layer each: [B, capacity, K, D] */
    sw_tensor **values;   /* [B, capacity, K, E] */
    sw_tensor *positions; /* I32 [B, capacity] */
} sw_cache;

typedef struct sw_net sw_net;

/* For `capacity` tokens of the heads that the net's modules have. */
sw_status sw_cache_create(sw_cache **out, const sw_net *net, uint64_t n_batch, uint64_t capacity,
                          sw_error *err);
void sw_cache_destroy(sw_cache *cache); /* NULL is fine */

/* It is part `part` of `n_parts`. Before its first pass; what attends must know of it (nn/stage.h). */
void sw_cache_take_part(sw_cache *cache, uint32_t part, uint32_t n_parts);

/* Room that a part needs for a sequence of `n_tokens`, however many of them come in the first pass. */
uint64_t sw_cache_part_tokens(uint64_t n_tokens, uint32_t n_parts);

void sw_cache_empty(sw_cache *cache);

/*
 * Does what is in it hold for a sequence that is `n_new` tokens longer? Not beyond the limit of longrope:
 * then it is emptied, and all tokens of the sequence are given anew.
 */
bool sw_cache_holds(const sw_cache *cache, const sw_net *net, uint64_t n_new);

/*
 * A pass begins: positions I32 [B, T] of its tokens go in, and what is attended to is given, [B, S]. The
 * first pass of parts has n_whole tokens in all. It ends with sw_cache_end(), and its tokens are in. Failures
 * are the step's.
 */
const sw_tensor *sw_cache_begin(sw_cache *cache, sw_step *step, const sw_tensor *positions, uint64_t n_whole);
void sw_cache_end(sw_cache *cache);

/* Put keys and values of the pass's tokens of a layer, and get all of them as views. */
sw_status sw_cache_put(sw_cache *cache, sw_step *step, uint32_t layer, const sw_tensor **k,
                       const sw_tensor **v);

#endif
