/*
 * Companions: tensors that belong to a quantised weight and are cut as a consequence of it (block scales of
 * FP8, packed words, zero points and group scales of GPTQ and AWQ, groups of MLX). A companion says how its
 * stored dims map to the weight's mathematical rows (out) and columns (in), and how many of those one stored
 * row stands for.
 */
#ifndef SW_PLAN_COMPANION_H
#define SW_PLAN_COMPANION_H

#include "plan/plan_data.h"

/* How many logical rows one stored row stands for. */
typedef enum sw_factor {
    SW_FACTOR_ONE = 0,
    SW_FACTOR_PACK,       /* 32 / bits values in a word */
    SW_FACTOR_GROUP,      /* group_size */
    SW_FACTOR_BLOCK_ROWS, /* weight_block_size[0] */
    SW_FACTOR_BLOCK_COLS  /* weight_block_size[1] */
} sw_factor;

struct sw_companion {
    const char *suffix;            /* ".weight_scale_inv": last segment of the name */
    sw_quantization_method method; /* NONE: whatever the config says */
    int out_dim;                   /* -1: none; a tensor with fewer dims is whole */
    sw_factor out_factor;
    int in_dim;
    sw_factor in_factor;
    bool is_weight;         /* stands in the weight's place (qweight) */
    bool follows_act_order; /* scales of an act-order weight: whole when the input side is cut */
};

/*
 * The companion that a name is, for this quantisation method, and the length of the name without the suffix;
 * NULL for an ordinary name.
 */
const sw_companion *sw_companion_of(const char *name, size_t length, sw_quantization_method method,
                                    size_t *stem_length);

/*
 * Is a tensor of this dtype what its name says? `weight` is the name of packed words and of a weight that is
 * none (a norm, a module that was left as it is): only the words are a companion.
 */
bool sw_companion_fits(const sw_companion *companion, sw_dtype dtype);

/* A name that only a quantised checkpoint has, whatever the method says (qweight, qzeros, g_idx ...). */
bool sw_companion_is_packed_name(const char *name, size_t length);

#endif
