/*
 * Steps: what a transition is made of. Every rank of the grid has the same list, step by step of the same
 * kind over the same axes; extents and rows are its own. A step turns one local tensor into another.
 */
#ifndef SW_DTENSOR_STEP_H
#define SW_DTENSOR_STEP_H

#include "dtensor/exchange.h"
#include "dtensor/share.h"

typedef enum sw_step_kind {
    SW_STEP_SLICE = 0,      /* R → S: keep rows; no traffic */
    SW_STEP_PAD,            /* S → P: rows among zeros; no traffic */
    SW_STEP_KEEP,           /* R → P: the first rank keeps, zeros elsewhere; no traffic */
    SW_STEP_ALL_GATHER,     /* S → R */
    SW_STEP_REDUCE_SCATTER, /* P → S */
    SW_STEP_ALL_REDUCE,     /* P → R */
    SW_STEP_ALL_TO_ALL,     /* S(other_dim) → S(dim) */
    SW_STEP_EXCHANGE, /* anything else: rows worked out beforehand, sent to whom they belong to, added up */
    SW_STEP_KIND_COUNT_
} sw_step_kind;

/* "slice", ...; NULL when out of range. */
const char *sw_step_kind_name(sw_step_kind kind);

typedef struct sw_list_step {
    sw_step_kind kind;
    uint32_t axes; /* axes of the grid over which ranks take part, a bit each; one, but for an exchange */
    uint32_t dim;  /* that is put together, cut or padded */
    uint32_t other_dim; /* all_to_all: the one that is put together */
    uint32_t n_dims;
    uint64_t in[SW_LAYOUT_MAX_DIMS]; /* extents of this rank's tensor before and after */
    uint64_t out[SW_LAYOUT_MAX_DIMS];
    uint64_t extent; /* of dim over the ranks of the axis, of which each has its plain chunk (mesh/shard.h) */
    uint64_t other_extent; /* the same of other_dim */
    sw_rows from;          /* slice and pad: rows of dim that are taken, and where they are put */
    sw_rows to;
    bool is_kept; /* keep: by this rank */
    const sw_exchange *exchange;
    const struct sw_group
        *group; /* the ranks that take part, once bound (dtensor/run.h); NULL: nobody else */
} sw_list_step;

/* Elements before and after. */
uint64_t sw_step_in_elems(const sw_list_step *step);
uint64_t sw_step_out_elems(const sw_list_step *step);

#endif
