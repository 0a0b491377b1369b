/*
 * Exchanges (dtensor/exchange.h). A member gives a reader what the rule of shares says (dtensor/share.h): of
 * copies one, of summands all. Both sides work it out from the same two layouts, so that what is sent and
 * what is expected agree without a word.
 */
#include "dtensor/exchange.h"

#include "base/status.h"

typedef struct maker {
    const sw_tensor_layout *from;
    const sw_tensor_layout *to;
    uint32_t copied; /* axes on which `from` has copies, of which one is chosen */
    uint32_t owned;  /* axes on which `to` is summed anew: the owner gets the value, the others zeros */
    sw_arena *arena; /* of the result */
    sw_arena *scratch;
    sw_error *err;
} maker;

static void destroy_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

/* Does some axis outside of `same` and before `a` cut the dim that `a` cuts? */
static bool is_moved_with(const sw_tensor_layout *layout, uint32_t same, uint32_t a)
{
    for (uint32_t outer = 0; outer < a && layout->on[a].kind == SW_PLACE_SHARD; outer++) {
        if ((same >> outer & 1) == 0 && layout->on[outer].kind == SW_PLACE_SHARD &&
            layout->on[outer].dim == layout->on[a].dim)
            return true;
    }
    return false;
}

uint32_t sw_exchange_axes(const sw_tensor_layout *from, const sw_tensor_layout *to)
{
    uint32_t all = (1U << from->grid.n_axes) - 1;
    uint32_t same = 0;
    uint32_t moved = 0;

    for (uint32_t a = 0; a < from->grid.n_axes; a++)
        same |= sw_tensor_layout_same_on(from, to, a) ? 1U << a : 0;
    for (uint32_t a = 0; a < from->grid.n_axes; a++) {
        if (is_moved_with(from, same, a) || is_moved_with(to, same, a))
            moved |= 1U << a;
    }
    return (all & ~same) | moved;
}

/* The rows in memory that stays. */
static sw_status keep(const maker *make, sw_rows *rows)
{
    sw_range *kept = sw_arena_alloc(make->arena, rows->n * sizeof *kept);

    if (kept == NULL)
        return sw_arena_fail(make->arena, "the rows of an exchange", make->err);
    for (uint32_t i = 0; i < rows->n; i++)
        kept[i] = rows->ranges[i];
    rows->ranges = kept;
    return SW_OK;
}

/* What goes from one rank to another along a dim, counted in the sender's tensor or in the receiver's. */
static sw_status rows_between(const maker *make, sw_grid_coord sender, sw_grid_coord receiver, uint32_t dim,
                              bool is_sender, sw_rows *out)
{
    const sw_share given = {sender, receiver, make->copied};
    const sw_share wanted = {receiver, {{0}}, make->owned};
    const sw_share all = {is_sender ? sender : receiver, {{0}}, 0};
    sw_rows a;
    sw_rows b;
    sw_rows held;

    SW_TRY(sw_tensor_layout_rows(&a, make->from, dim, &given, make->scratch, make->err));
    SW_TRY(sw_tensor_layout_rows(&b, make->to, dim, &wanted, make->scratch, make->err));
    SW_TRY(sw_rows_meet(&a, &a, &b, make->scratch, make->err));
    SW_TRY(
        sw_tensor_layout_rows(&held, is_sender ? make->from : make->to, dim, &all, make->scratch, make->err));
    SW_TRY(sw_rows_places(out, &a, &held, make->scratch, make->err));
    return keep(make, out);
}

static sw_status box_between(const maker *make, sw_grid_coord sender, sw_grid_coord receiver, bool is_sender,
                             sw_box *out)
{
    const sw_share given = {sender, receiver, make->copied};
    const sw_share wanted = {receiver, {{0}}, make->owned};

    *out = (sw_box){.elems = 0};
    if (!sw_tensor_layout_shares(make->from, &given) || !sw_tensor_layout_shares(make->to, &wanted))
        return SW_OK;
    uint64_t elems = 1;
    for (uint32_t d = 0; d < make->from->n_dims; d++) {
        SW_TRY(rows_between(make, sender, receiver, d, is_sender, &out->along[d]));
        elems *= out->along[d].count;
    }
    out->elems = elems;
    return SW_OK;
}

static sw_status make_boxes(const maker *make, sw_exchange *out, uint32_t axes, sw_grid_coord at)
{
    sw_box *sent = sw_arena_zero(make->arena, out->n_members, sizeof *sent);
    sw_box *received = sw_arena_zero(make->arena, out->n_members, sizeof *received);
    uint64_t *n_sent = sw_arena_zero(make->arena, out->n_members, sizeof *n_sent);
    uint64_t *n_received = sw_arena_zero(make->arena, out->n_members, sizeof *n_received);

    if (sent == NULL || received == NULL || n_sent == NULL || n_received == NULL)
        return sw_arena_fail(make->arena, "an exchange", make->err);
    for (uint32_t i = 0; i < out->n_members; i++) {
        sw_grid_coord other = sw_grid_member(&make->from->grid, axes, at, i);
        SW_TRY(box_between(make, at, other, true, &sent[i]));
        SW_TRY(box_between(make, other, at, false, &received[i]));
        n_sent[i] = i == out->me ? 0 : sent[i].elems;
        n_received[i] = i == out->me ? 0 : received[i].elems;
        out->sent_elems += n_sent[i];
        out->received_elems += n_received[i];
    }
    out->sent = sent;
    out->received = received;
    out->n_sent = n_sent;
    out->n_received = n_received;
    return SW_OK;
}

sw_status sw_exchange_make(sw_exchange *out, const sw_tensor_layout *from, const sw_tensor_layout *to,
                           sw_grid_coord at, sw_arena *arena, sw_error *err)
{
    sw_arena *scratch SW_AUTO(destroy_arena) = sw_arena_create(0);
    uint32_t axes = sw_exchange_axes(from, to);
    uint32_t summed = 0;
    maker make = {.from = from, .to = to, .arena = arena, .scratch = scratch, .err = err};

    if (scratch == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for an exchange");
    for (uint32_t a = 0; a < from->grid.n_axes; a++) {
        uint32_t bit = 1U << a;
        if ((axes & bit) == 0)
            continue;
        summed |= from->is_summed[a] ? bit : 0;
        make.owned |= to->is_summed[a] ? bit : 0;
    }
    make.copied = axes & ~summed;
    sw_exchange exchange = {.n_members = sw_grid_ranks(&from->grid, axes),
                            .me = sw_grid_index(&from->grid, axes, at),
                            .is_added = summed != 0,
                            .has_gaps = make.owned != 0};
    SW_TRY(make_boxes(&make, &exchange, axes, at));
    *out = exchange;
    return SW_OK;
}
