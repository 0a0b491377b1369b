/*
 * How the tokens of a sequence are spread over the ranks of context parallelism. Every rank has the same
 * number of them: what ranks do not divide is padded at the end. Two orders:
 *
 *     contiguous   rank r has the r-th of cp chunks
 *     balanced     rank r has chunks r and 2 cp - 1 - r of 2 cp: one from the head, one from the tail, so
 *                  that in causal attention all ranks have the same to do
 *
 * The balanced order is a permutation of the sequence; positions follow their tokens. Pure arithmetic.
 */
#ifndef SW_PARALLEL_SEQUENCE_H
#define SW_PARALLEL_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

#include "shardwright/error.h"

typedef enum sw_sequence_order {
    SW_SEQUENCE_CONTIGUOUS = 0,
    SW_SEQUENCE_BALANCED,
    SW_SEQUENCE_ORDER_COUNT_
} sw_sequence_order;

/* Of "contiguous" or "balanced"; SW_SEQUENCE_ORDER_COUNT_: neither. */
sw_sequence_order sw_sequence_order_of_name(const char *name);

typedef struct sw_sequence {
    uint64_t n_tokens;
    uint64_t n_padded;
    uint32_t parts;
    sw_sequence_order order; /* one rank has everything in its order */
} sw_sequence;

/* SW_E_ARGUMENT: no parts, no such order; SW_E_LIMIT: more tokens than positions count. */
sw_status sw_sequence_make(sw_sequence *out, uint64_t n_tokens, uint32_t parts, sw_sequence_order order,
                           sw_error *err);

/* Tokens of each rank, padding included. */
uint64_t sw_sequence_local(const sw_sequence *sequence);

/* The token at a place of a rank; from n_tokens on it is padding. */
uint64_t sw_sequence_token(const sw_sequence *sequence, uint32_t rank, uint64_t at);

typedef struct sw_sequence_place {
    uint32_t rank;
    uint64_t at;
} sw_sequence_place;

/* And back: where a token, or padding, is. */
sw_sequence_place sw_sequence_place_of(const sw_sequence *sequence, uint64_t token);

/* Rows of tokens before the cut, [n_rows, n_tokens] each. */
typedef struct sw_batch {
    uint64_t n_rows;
    const int32_t *ids;
    const int32_t *labels;    /* of the tokens themselves, not yet shifted; NULL: the ids */
    const int32_t *positions; /* NULL: 0, 1, ...; -1: padding that the row came with */
    const int32_t *targets;   /* labels that are shifted already, in place of those; NULL: there are none */
} sw_batch;

/* What a rank gets, [n_rows, tokens of a rank] each. */
typedef struct sw_batch_part {
    int32_t *ids;       /* padding: 0 */
    int32_t *targets;   /* the label of the next token of the sequence, on whichever rank that is; -1: none */
    int32_t *positions; /* padding: -1 */
} sw_batch_part;

void sw_sequence_cut(const sw_sequence *sequence, uint32_t rank, const sw_batch *batch,
                     const sw_batch_part *out);

/*
 * Tokens as they stand when the ranks' parts are put one behind the other, [n_outer, n_padded, n_bytes], to
 * the order of the sequence without padding, [n_outer, n_tokens, n_bytes].
 */
void sw_sequence_restore(const sw_sequence *sequence, uint64_t n_outer, size_t n_bytes, const void *gathered,
                         void *out);

#endif
