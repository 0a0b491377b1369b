/*
 * Placements to parts (checkpoint/slice.h). Each axis speaks of its own dim, so that what is held is a
 * product, and what is owned is one too: the lowest coordinate of those that hold an element is the lowest on
 * each axis.
 */
#include "checkpoint/slice.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "mesh/placement.h"
#include "mesh/shard.h"

enum { MOST_RANGES = 1 << 20 }; /* of rows of experts that stand one below the other */

/* A parameter under way: pieces of each dim, and those of them that are owned. */
typedef struct slicing {
    const sw_shape *shape; /* the view, if there is one */
    sw_pieces held[SW_MAX_DIMS + 1];
    sw_pieces owned[SW_MAX_DIMS + 1];
    bool is_cut[SW_MAX_DIMS + 1];
    bool is_replica;
    sw_arena *arena;
    sw_error *err;
} slicing;

static sw_status no_memory(const slicing *s)
{
    return sw_arena_fail(s->arena, "the layout of the files", s->err);
}

/* ---- axes ---- */

static sw_status cut(slicing *s, const sw_placement *placement, const char *axis, uint32_t n, uint32_t index)
{
    uint32_t capacity = sw_shard_pieces_bound(placement);
    uint32_t dim = 0;

    if (!sw_placement_dim(placement, s->shape->n_dims, &dim))
        return SW_FAIL(s->err, SW_E_PLAN, "make the plan again",
                       "cut over %s along dim %" PRId32 " of %" PRIu32, axis, placement->dim,
                       s->shape->n_dims);
    if (s->is_cut[dim])
        return SW_FAIL(s->err, SW_E_PLAN, "cut it along different dims",
                       "dim %" PRIu32 " is cut over ep and over tp", dim);
    sw_range *held = sw_arena_zero(s->arena, capacity, sizeof *held);
    sw_range *owned = sw_arena_zero(s->arena, capacity, sizeof *owned);
    if (held == NULL || owned == NULL)
        return no_memory(s);
    s->is_cut[dim] = true;
    s->held[dim].ranges = held;
    s->owned[dim].ranges = owned;
    uint64_t extent = s->shape->dims[dim];
    sw_status status = sw_shard_pieces(placement, extent, n, index, held, capacity, &s->held[dim].n, s->err);
    if (status == SW_OK)
        status =
            sw_shard_owned_pieces(placement, extent, n, index, owned, capacity, &s->owned[dim].n, s->err);
    if (status != SW_OK)
        sw_error_context(s->err, "over %s=%" PRIu32, axis, n);
    return status;
}

static sw_status apply(slicing *s, const sw_placement *placement, const char *axis, uint32_t n,
                       uint32_t index)
{
    switch (placement->kind) {
    case SW_PLACE_REPLICATE:
        s->is_replica = s->is_replica || index > 0;
        return SW_OK;
    case SW_PLACE_SHARD:
        return cut(s, placement, axis, n, index);
    default:
        return SW_FAIL(s->err, SW_E_PLAN, "a stored parameter is R or S",
                       "placed P over %s: a summand is not a part of the model", axis);
    }
}

/* Is the placement one that files of this set cannot have? The axis does not tell them apart. */
static bool is_out_of_set(const sw_placement *placement, bool has_axis)
{
    return !has_axis && placement->kind != SW_PLACE_REPLICATE;
}

static sw_status apply_all(slicing *s, const sw_places *places, sw_slice_coord at)
{
    if (places->on[SW_ON_CP].kind != SW_PLACE_REPLICATE)
        return SW_FAIL(s->err, SW_E_PLAN, "keep parameters R over cp", "cut over cp, which no file set is");
    if (is_out_of_set(&places->on[SW_ON_TP], at.has_tp))
        return SW_FAIL(s->err, SW_E_PLAN, "cut experts over ep or over tp, not both",
                       "an expert under a derived ep that is cut over tp too");
    SW_TRY(apply(s, &places->on[SW_ON_EP], "ep", at.n_ep, at.ep));
    return apply(s, &places->on[SW_ON_TP], "tp", at.n_tp, at.tp);
}

static sw_status begin(slicing *s)
{
    sw_range *whole = sw_arena_zero(s->arena, s->shape->n_dims, sizeof *whole);

    if (whole == NULL)
        return no_memory(s);
    for (uint32_t d = 0; d < s->shape->n_dims; d++) {
        whole[d].end = s->shape->dims[d];
        s->held[d] = (sw_pieces){whole[d].end == 0 ? 0 : 1, &whole[d]};
        s->owned[d] = s->held[d];
    }
    return SW_OK;
}

/* ---- rows of all experts in one matrix ---- */

/* Ranges of rows, where each of `outer` has `inner` rows of `each`. */
static sw_status join_rows(const slicing *s, const sw_pieces *outer, const sw_pieces *inner, uint64_t each,
                           sw_pieces *out)
{
    bool is_whole = inner->n == 1 && inner->ranges[0].begin == 0 && inner->ranges[0].end == each;
    uint64_t n_outer = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < outer->n; i++)
        n_outer += is_whole ? 1 : outer->ranges[i].end - outer->ranges[i].begin;
    if (n_outer > MOST_RANGES || n_outer * inner->n > MOST_RANGES)
        return SW_FAIL(s->err, SW_E_LIMIT, "use smaller sizes of the mesh", "more than %d ranges of rows",
                       MOST_RANGES);
    sw_range *ranges = sw_arena_zero(s->arena, n_outer * inner->n, sizeof *ranges);
    if (ranges == NULL)
        return no_memory(s);
    for (uint32_t i = 0; i < outer->n; i++) {
        const sw_range *o = &outer->ranges[i];
        for (uint64_t e = o->begin; e < o->end && !is_whole; e++) {
            for (uint32_t k = 0; k < inner->n; k++)
                ranges[n++] = (sw_range){e * each + inner->ranges[k].begin, e * each + inner->ranges[k].end};
        }
        if (is_whole)
            ranges[n++] = (sw_range){o->begin * each, o->end * each};
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) { /* the last rows of an expert touch the first of the next */
        if (kept > 0 && ranges[kept - 1].end == ranges[i].begin)
            ranges[kept - 1].end = ranges[i].end;
        else
            ranges[kept++] = ranges[i];
    }
    *out = (sw_pieces){kept, ranges};
    return SW_OK;
}

/* From the dims of the view [experts, rows, ...] to the stored ones [experts * rows, ...]. */
static sw_status leave_view(slicing *s, const sw_facts *f)
{
    const sw_shape *view = f->view;
    const sw_shape *stored = f->shape;
    sw_pieces joined;
    uint64_t rows = 0;

    bool fits = view->n_dims == stored->n_dims + 1 && view->n_dims >= 2 &&
                sw_mul_u64(view->dims[0], view->dims[1], &rows) && rows == stored->dims[0] &&
                memcmp(view->dims + 2, stored->dims + 1, (stored->n_dims - 1) * sizeof *view->dims) == 0;
    if (!fits)
        return SW_FAIL(s->err, SW_E_PLAN, "make the plan again", "its view does not fit its shape");
    SW_TRY(join_rows(s, &s->held[0], &s->held[1], view->dims[1], &joined));
    SW_TRY(join_rows(s, &s->owned[0], &s->owned[1], view->dims[1], &s->owned[0]));
    s->held[0] = joined;
    for (uint32_t d = 1; d < stored->n_dims; d++) {
        s->held[d] = s->held[d + 1];
        s->owned[d] = s->owned[d + 1];
    }
    s->shape = stored;
    return SW_OK;
}

/* ---- the whole ---- */

static sw_status keep(const slicing *s, const sw_pieces *pieces, sw_part *out)
{
    uint32_t n_dims = s->shape->n_dims;
    sw_pieces *along = sw_arena_zero(s->arena, n_dims, sizeof *along);

    if (along == NULL)
        return no_memory(s);
    if (n_dims > 0)
        memcpy(along, pieces, n_dims * sizeof *along);
    *out = (sw_part){n_dims, along};
    return SW_OK;
}

sw_status sw_slice_make(sw_held *out, const sw_facts *facts, sw_slice_coord at, sw_arena *arena,
                        sw_error *err)
{
    slicing s = {.shape = facts->view != NULL ? facts->view : facts->shape, .arena = arena, .err = err};

    if (s.shape->n_dims > SW_MAX_DIMS)
        return SW_FAIL(err, SW_E_LIMIT, "check that the plan is right",
                       "%" PRIu32 " dims, at most %d are supported", s.shape->n_dims, SW_MAX_DIMS);
    SW_TRY(begin(&s));
    SW_TRY(apply_all(&s, &facts->places, at));
    if (facts->view != NULL)
        SW_TRY(leave_view(&s, facts));
    SW_TRY(keep(&s, s.held, &out->part));
    SW_TRY(keep(&s, s.owned, &out->owned));
    bool is_empty = sw_part_elems(&out->part) == 0;
    out->is_replica = !is_empty && (s.is_replica || sw_part_elems(&out->owned) == 0);
    if (is_empty || out->is_replica)
        out->owned = out->part;
    return SW_OK;
}

static bool has_row(const sw_pieces *pieces, uint64_t row)
{
    for (uint32_t i = 0; i < pieces->n; i++) {
        if (row >= pieces->ranges[i].begin && row < pieces->ranges[i].end)
            return true;
    }
    return false;
}

const sw_held *sw_slice_expert(sw_slice_memo *memo, uint64_t number)
{
    const sw_held *stack = &memo->held;

    if (!has_row(&stack->part.along[0], number))
        return NULL;
    bool is_replica = stack->is_replica || !has_row(&stack->owned.along[0], number);
    sw_held *expert = &memo->expert[is_replica];
    *expert = (sw_held){
        .part = {stack->part.n_dims - 1,  stack->part.along + 1 },
        .owned = {stack->owned.n_dims - 1, stack->owned.along + 1},
        .is_replica = is_replica
    };
    return expert;
}
