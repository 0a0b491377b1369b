/*
 * Exchange: the general step from one layout to another. For each member of a group it is worked out once
 * which elements this rank sends to it and gets from it, as one set of rows a dim, counted in the local
 * tensors. Elements that several members hold as summands come from all of them.
 */
#ifndef SW_DTENSOR_EXCHANGE_H
#define SW_DTENSOR_EXCHANGE_H

#include "dtensor/share.h"

/* A product of rows of a local tensor; elements in row-major order. */
typedef struct sw_box {
    sw_rows along[SW_LAYOUT_MAX_DIMS];
    uint64_t elems;
} sw_box;

/* The group are the ranks of the axes of the step, outer axes first. */
typedef struct sw_exchange {
    uint32_t n_members;
    uint32_t me;
    const sw_box *sent;     /* a box of the tensor before for each member, this rank included */
    const sw_box *received; /* a box of the tensor after, the same */
    /* Elements to and from each member, none to and from this rank itself, and their sums. */
    const uint64_t *n_sent;
    const uint64_t *n_received;
    uint64_t sent_elems;
    uint64_t received_elems;
    bool is_added; /* what comes twice for an element is added, in the order of the members */
    bool has_gaps; /* on some rank nothing comes for some element: it becomes zero */
} sw_exchange;

/* The axes that must take part in a change from `from` to `to`, a bit each. */
uint32_t sw_exchange_axes(const sw_tensor_layout *from, const sw_tensor_layout *to);

/* The exchange of the rank at `at`, in memory of `arena`; layouts differ in placements only. */
sw_status sw_exchange_make(sw_exchange *out, const sw_tensor_layout *from, const sw_tensor_layout *to,
                           sw_grid_coord at, sw_arena *arena, sw_error *err);

#endif
