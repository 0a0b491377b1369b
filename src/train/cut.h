/*
 * This rank's tokens of rows that every rank of context parallelism knows whole: in an order
 * (parallel/sequence.h), with their positions, padded where ranks do not divide a row. Where cp is one rank,
 * rows stay as they are.
 */
#ifndef SW_TRAIN_CUT_H
#define SW_TRAIN_CUT_H

#include "parallel/sequence.h"
#include "train/feed.h"
#include "train/ranks.h"

typedef struct sw_cutter {
    sw_sequence_order order;
    uint32_t n_parts;
    uint32_t part; /* of this rank */
    int32_t *ids;  /* of the last cut; NULL: nothing is cut */
    int32_t *targets;
    int32_t *positions;
} sw_cutter; /* all zero is none */

/* For passes of up to n_rows rows of n_tokens. SW_E_NO_MEMORY, SW_E_LIMIT. */
sw_status sw_cutter_create(sw_cutter *out, const sw_ranks *ranks, sw_sequence_order order, uint64_t n_rows,
                           uint64_t n_tokens, sw_error *err);
void sw_cutter_clear(sw_cutter *cutter);

/* What this rank has of whole rows with targets that begin at position 0; lasts until the next cut. */
sw_feed sw_cutter_cut(sw_cutter *cutter, const sw_feed *whole);

#endif
