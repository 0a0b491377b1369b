/* Shares (dtensor/share.h): what a rank holds is cut by the axes in turn, and what it gives is met with it.
 */
#include "dtensor/share.h"

#include "base/status.h"
#include "mesh/shard.h"

/* ---- gradients ---- */

void sw_tensor_layout_gradient(sw_tensor_layout *out, const sw_tensor_layout *layout, uint32_t split)
{
    sw_tensor_layout gradient = *layout;

    for (uint32_t a = 0; a < layout->grid.n_axes; a++) {
        bool has_copies =
            !layout->is_summed[a] && sw_shard_replicas(&layout->on[a], layout->grid.size[a]) != 1;
        gradient.is_summed[a] = has_copies && (split >> a & 1) != 0;
    }
    *out = gradient;
}

/* ---- rows ---- */

/* The rows, counted in what is left of the dim, that the placement of one axis leaves, or gives a reader. */
static sw_status cut(sw_rows *out, const sw_placement *placement, uint64_t extent, uint32_t parts,
                     sw_rank_pair ranks, bool is_chosen, sw_arena *arena, sw_error *err)
{
    uint32_t capacity = sw_shard_pieces_bound(placement);
    sw_range *pieces = sw_arena_zero(arena, capacity, sizeof *pieces);

    *out = (sw_rows){.ranges = pieces};
    if (pieces == NULL)
        return sw_arena_fail(arena, "the rows of a layout", err);
    if (is_chosen)
        SW_TRY(sw_shard_pieces_for(placement, extent, parts, ranks, pieces, capacity, &out->n, err));
    else
        SW_TRY(sw_shard_pieces(placement, extent, parts, ranks.holder, pieces, capacity, &out->n, err));
    for (uint32_t i = 0; i < out->n; i++)
        out->count += pieces[i].end - pieces[i].begin;
    return SW_OK;
}

sw_status sw_tensor_layout_rows(sw_rows *out, const sw_tensor_layout *layout, uint32_t dim,
                                const sw_share *share, sw_arena *arena, sw_error *err)
{
    sw_rows held;
    sw_rows given;

    SW_TRY(sw_rows_whole(&held, layout->dims[dim], arena, err));
    given = held;
    for (uint32_t a = 0; a < layout->grid.n_axes; a++) {
        sw_rank_pair ranks = {share->holder.at[a], share->reader.at[a]};
        bool is_chosen = (share->chosen >> a & 1) != 0;
        uint32_t parts = layout->grid.size[a];
        sw_rows pieces;
        sw_rows chosen;
        if (layout->on[a].kind != SW_PLACE_SHARD || (uint32_t)layout->on[a].dim != dim)
            continue;
        uint64_t left = held.count;
        SW_TRY(cut(&pieces, &layout->on[a], left, parts, ranks, is_chosen, arena, err));
        SW_TRY(sw_rows_pick(&chosen, &held, &pieces, arena, err));
        SW_TRY(sw_rows_meet(&given, &given, &chosen, arena, err));
        SW_TRY(cut(&pieces, &layout->on[a], left, parts, ranks, false, arena, err));
        SW_TRY(sw_rows_pick(&held, &held, &pieces, arena, err));
    }
    *out = given;
    return SW_OK;
}

bool sw_tensor_layout_shares(const sw_tensor_layout *layout, const sw_share *share)
{
    for (uint32_t a = 0; a < layout->grid.n_axes; a++) {
        bool is_chosen = (share->chosen >> a & 1) != 0;
        if (is_chosen && layout->on[a].kind != SW_PLACE_SHARD && share->holder.at[a] != share->reader.at[a])
            return false;
    }
    return true;
}
