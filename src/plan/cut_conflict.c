/* Contradicting cuts; the rule holds for overrides and for plan files alike. */
#include "plan/cut_conflict.h"

#include <string.h>

#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"
#include "plan/layout.h"

bool sw_same_rows(const sw_placement *a, const sw_placement *b, uint64_t extent, uint32_t ranks)
{
    sw_range left[SW_CUT_MAX_SEGMENTS];
    sw_range right[SW_CUT_MAX_SEGMENTS];

    for (uint32_t rank = 0; a->cut != b->cut && rank < ranks; rank++) { /* equal cuts are one record */
        uint32_t n_left = 0;
        uint32_t n_right = 0;
        if (sw_shard_pieces(a, extent, ranks, rank, left, SW_COUNT(left), &n_left, NULL) != SW_OK ||
            sw_shard_pieces(b, extent, ranks, rank, right, SW_COUNT(right), &n_right, NULL) != SW_OK)
            return true;
        if (n_left != n_right || memcmp(left, right, n_left * sizeof *left) != 0)
            return false;
    }
    return true;
}

/* The same rows of the same dim? */
static bool is_same_cut(const sw_placement *a, const sw_placement *b, const sw_shape *shape, uint32_t ranks)
{
    uint32_t dim_a = 0;
    uint32_t dim_b = 0;

    if (!sw_placement_dim(a, shape->n_dims, &dim_a) || !sw_placement_dim(b, shape->n_dims, &dim_b))
        return true; /* the lints name a dim that is not there */
    return dim_a == dim_b && sw_same_rows(a, b, shape->dims[dim_a], ranks);
}

bool sw_cut_conflicts(const sw_plan *plan, const sw_facts *derived, const sw_places *said, int axis)
{
    const sw_shape *shape = derived->view != NULL ? derived->view : derived->shape;
    const sw_placement *now = &said->on[axis];
    const sw_placement *was = &derived->places.on[axis];
    bool is_whole = derived->role == SW_ROLE_MOE_GATE || derived->role == SW_ROLE_REPLICATED;
    /* Rows of a plain tensor may be grouped as the user knows and we do not: the dim alone must be right. */
    bool is_loose = derived->layout == SW_LAYOUT_PLAIN && was->dim == now->dim;
    uint32_t ranks = axis == SW_ON_TP ? plan->tp : plan->ep;

    if (now->kind != SW_PLACE_SHARD || !plan->is_active[axis])
        return false;
    return is_whole || (was->kind == SW_PLACE_SHARD && !is_loose && !is_same_cut(was, now, shape, ranks));
}
