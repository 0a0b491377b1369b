/*
 * From "column or row" to the exact cut of one tensor over tp: which stored dim, in which segments, with how
 * many replicas. Everything here is arithmetic on extents and head counts; a cut that would be wrong is a
 * fault that names the numbers and the degrees that fit.
 */
#ifndef SW_PLAN_LAYOUT_H
#define SW_PLAN_LAYOUT_H

#include "plan/plan_data.h"
#include "plan/sizes.h"

/* What a cut is asked for. Extents are logical (mathematical) rows of the side that is cut. */
typedef struct sw_cut_request {
    sw_layout layout;
    sw_role role;    /* for the help on an unknown layout only */
    uint32_t parts;  /* STACKED, INTERLEAVED, QKV_BLOCKS */
    uint64_t extent; /* logical rows */
    uint64_t unit;   /* every piece must be a multiple of this (quantisation groups); 1: none */
    uint64_t heads;  /* 0: unknown */
    uint64_t kv_heads;
    uint32_t ranks;     /* size of tp, above 1 */
    bool is_input;      /* the extent is one of columns, not of rows */
    bool may_be_uneven; /* pieces need not be equal: vocabulary, quantisation groups */
    uint32_t n_explicit;
    const sw_segment *explicit_segments; /* SW_LAYOUT_EXPLICIT */
} sw_cut_request;

enum { SW_CUT_MAX_SEGMENTS = 16 };

/* A cut in logical rows, or the reason why there is none. */
typedef struct sw_cut_result {
    uint32_t n_groups;   /* 1 unless fewer groups than ranks */
    uint32_t n_segments; /* 0: one plain contiguous shard */
    sw_segment segments[SW_CUT_MAX_SEGMENTS];
    uint32_t replicas; /* most ranks that hold one piece; 1: none are shared */
    bool is_uneven;
    const char *fault; /* stable code, or NULL */
    char what[256];
    char help[320];
} sw_cut_result;

void sw_cut_solve(const sw_cut_request *request, sw_cut_result *result);

/* The stored cut for rows of `factor` logical rows each; false when a piece is not a multiple of the factor.
 */
bool sw_cut_scale(const sw_cut_result *logical, uint64_t extent, uint32_t ranks, uint64_t factor,
                  sw_cut_result *stored);

/* Degrees from 1 on that `request` would accept; those that replicate are marked. */
void sw_cut_legal_ranks(const sw_cut_request *request, sw_sizes *sizes);

/* How the stored dims of a tensor map to out, in and expert, for its form and number of dims. */
sw_axes_of sw_form_axes(sw_form form, uint32_t n_dims);

/* Words of docs: "plain", "heads", "stacked", "per_head", ...; NULL when out of range. */
const char *sw_layout_name(sw_layout layout);

/* Do the rows of a layout hold query heads; key (and value) heads; any of them? */
bool sw_layout_has_queries(sw_layout layout);
bool sw_layout_has_keys(sw_layout layout);
bool sw_layout_has_heads(sw_layout layout);

#endif
