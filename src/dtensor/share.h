/*
 * What ranks give each other when a tensor goes from one layout to another, and layouts of gradients. Pure
 * arithmetic on layouts (mesh/layout.h) and rows.
 */
#ifndef SW_DTENSOR_SHARE_H
#define SW_DTENSOR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "dtensor/rows.h"
#include "mesh/layout.h"

/*
 * The layout of the gradient of a tensor, under one logical loss: that of S is S, of P is R, of R is R. Where
 * the consumer is split over an axis (its bit in `split`), ranks that hold the same have used it for
 * different things, and their gradients are summands: that of R is P.
 */
void sw_tensor_layout_gradient(sw_tensor_layout *out, const sw_tensor_layout *layout, uint32_t split);

/*
 * What `holder` gives to `reader`. On an axis whose bit is set in `chosen` a row that several ranks hold
 * comes from one of them: the reader itself, or the one with its place among the replicas. Reader 0 gets
 * from each holder what it owns. On other axes everything that is held is given.
 */
typedef struct sw_share {
    sw_grid_coord holder;
    sw_grid_coord reader;
    uint32_t chosen;
} sw_share;

/* The rows of `dim` of a share. Those that a rank holds, in their order: a share with nothing chosen. */
sw_status sw_tensor_layout_rows(sw_rows *out, const sw_tensor_layout *layout, uint32_t dim,
                                const sw_share *share, sw_arena *arena, sw_error *err);

/* Is there a share at all: does every chosen axis that cuts no dim choose this holder? */
bool sw_tensor_layout_shares(const sw_tensor_layout *layout, const sw_share *share);

#endif
