/*
 * Collectives (comm/collective.h). Where MPI has the collective and the memory lies as it wants it, the call
 * is MPI's and nothing else; what is short goes in slots (comm/slots.h), everything else are lanes between
 * the members (comm/lanes.h), or rounds through the stage. A group with a window goes through that instead
 * (comm/window_copy.h); without it, the same is done by MPI, which is what windows are tested against.
 */
#include "comm/collective.h"

#include <string.h>

#include "comm/parts.h"
#include "comm/slots.h"
#include "comm/window_copy.h"

enum { SMALL_BYTES = 64 << 10 }; /* up to here everything is gathered and combined by all */

/* ---- all_gather ---- */

static bool has_window(const sw_group *group)
{
    return group->work->window != NULL;
}

/* By MPI, in slots. */
static bool is_short(const sw_group *group, uint64_t slot, sw_dtype dtype)
{
    return !has_window(group) && sw_slots_are_short(group, slot, sw_width_of(dtype));
}

static void gather_lanes(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out,
                         bool is_whole)
{
    if (has_window(group)) {
        sw_copy_gather(group, dim, in, out);
        return;
    }
    sw_lanes_of_gather(group, dim, in, out);
    sw_lane_cut cut = sw_lane_cut_of(group, in->width, is_whole);
    sw_lanes_move(group, &cut);
}

/* Stretches of memory, one behind the other: MPI's own collective. */
static void gather_rows(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in,
                        void *out)
{
    MPI_Datatype type = sw_elem_type(sw_width_of(dtype));
    int *counts = group->work->counts;
    int *places = counts + group->size;
    uint64_t row = along->n_inner;
    char *own = (char *)out + sw_rows_of(group, along->extent, group->index).begin * row * sw_width_of(dtype);
    const void *from = in == own ? MPI_IN_PLACE : in;

    if (along->extent % group->size == 0) {
        int n = (int)(along->extent / group->size * row);
        MPI_Allgather(from, n, type, out, n, type, group->mpi);
        return;
    }
    for (uint32_t m = 0; m < group->size; m++) {
        sw_range rows = sw_rows_of(group, along->extent, m);
        counts[m] = (int)((rows.end - rows.begin) * row);
        places[m] = (int)(rows.begin * row);
    }
    MPI_Allgatherv(from, counts[group->index], type, out, counts, places, type, group->mpi);
}

static void gather(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in, void *out)
{
    bool is_rows = along->n_outer == 1;
    uint64_t slot = sw_slot_along(group, along);

    if (group->size > 1 && !has_window(group) && is_rows &&
        along->extent * along->n_inner <= group->work->most_elems) {
        gather_rows(group, along, dtype, in, out);
        return;
    }
    if (is_short(group, slot, dtype)) {
        sw_slots_gather(group, slot, sw_width_of(dtype), in, along, out);
        return;
    }
    sw_view source = sw_along_view(along, sw_own_rows(group, along->extent), dtype, in);
    sw_view target = sw_along_view(along, along->extent, dtype, out);
    gather_lanes(group, 1, &source, &target, is_rows);
}

void sw_all_gather(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in, void *out)
{
    sw_enter_along(group, SW_CALL_ALL_GATHER, dtype, along);
    gather(group, along, dtype, in, out);
}

void sw_all_gather_view(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                        const sw_view *out)
{
    sw_enter(group, SW_CALL_ALL_GATHER, dtype, SW_COMBINE_SUM, out->n_dims, out->dims);
    gather_lanes(group, dim, in, out, false);
}

/* ---- reduce_scatter ---- */

/* Pieces are exchanged and added by their owner. */
static void scatter_lanes(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                          const sw_view *out)
{
    if (has_window(group)) {
        sw_copy_scatter(group, dim, dtype, in, out);
        return;
    }
    sw_lanes_of_scatter(group, dim, in, out);
    sw_lane_cut cut = sw_lane_cut_of(group, in->width, false);
    sw_lanes_combine(group, &cut, dtype, SW_COMBINE_SUM);
}

void sw_reduce_scatter(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in,
                       void *out)
{
    uint64_t slot = sw_slot_along(group, along);

    sw_enter_along(group, SW_CALL_REDUCE_SCATTER, dtype, along);
    if (is_short(group, slot, dtype)) {
        sw_slots_scatter(group, slot, dtype, along, in, out);
        return;
    }
    sw_view source = sw_along_view(along, along->extent, dtype, in);
    sw_view target = sw_along_view(along, sw_own_rows(group, along->extent), dtype, out);
    scatter_lanes(group, 1, dtype, &source, &target);
}

void sw_reduce_scatter_view(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                            const sw_view *out)
{
    sw_enter(group, SW_CALL_REDUCE_SCATTER, dtype, SW_COMBINE_SUM, in->n_dims, in->dims);
    scatter_lanes(group, dim, dtype, in, out);
}

/* ---- all_reduce ---- */

/* A few values: all are gathered, and combined by everybody. `in` may be `out`. */
static void reduce_small(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const void *in,
                         void *out)
{
    sw_work *work = group->work;
    uint32_t width = sw_width_of(dtype);

    MPI_Allgather(in, (int)n, sw_elem_type(width), work->stage, (int)n, sw_elem_type(width), group->mpi);
    for (uint32_t m = 0; m < group->size; m++)
        work->parts[m] = work->stage + m * n * width;
    sw_combine(out, work->parts, group->size, n, dtype, op);
}

/* Each member combines its part, then all parts are gathered. */
static void reduce_large(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const void *in,
                         void *out)
{
    const sw_along row = {1, n, 1};
    sw_view source = sw_along_view(&row, n, dtype, in);
    sw_view target = sw_along_view(&row, n, dtype, out);
    sw_view own = sw_view_rows(&target, 1, sw_rows_of(group, n, group->index));

    sw_lanes_of_scatter(group, 1, &source, &own);
    sw_lane_cut cut = sw_lane_cut_of(group, source.width, false);
    sw_lanes_combine(group, &cut, dtype, op);
    gather(group, &row, dtype, own.data, out);
}

/* Dense values that fit the stage or are MPI's. */
static void reduce(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in,
                   char *out)
{
    const sw_work *work = group->work;
    MPI_Datatype type = sw_sum_type(dtype, op);
    uint32_t width = sw_width_of(dtype);
    uint64_t most =
        work->stage_bytes / width < work->most_elems ? work->stage_bytes / width : work->most_elems;
    uint64_t small = SMALL_BYTES < work->stage_bytes ? SMALL_BYTES : work->stage_bytes;

    if (group->size == 1) {
        if (out != in)
            memcpy(out, in, n * width);
        return;
    }
    if (has_window(group)) {
        sw_copy_reduce(group, n, dtype, op, in, out);
        return;
    }
    if (type == MPI_DATATYPE_NULL) {
        bool is_small = n <= small / width / group->size;
        (is_small ? reduce_small : reduce_large)(group, n, dtype, op, in, out);
        return;
    }
    for (uint64_t first = 0; first < n; first += most) {
        int count = (int)(n - first < most ? n - first : most);
        MPI_Allreduce(in == out ? MPI_IN_PLACE : (const void *)(in + first * width), out + first * width,
                      count, type, MPI_SUM, group->mpi);
    }
}

void sw_all_reduce(const sw_group *group, uint64_t n_elems, sw_dtype dtype, const void *in, void *out)
{
    sw_enter(group, SW_CALL_ALL_REDUCE, dtype, SW_COMBINE_SUM, 1, &n_elems);
    reduce(group, n_elems, dtype, SW_COMBINE_SUM, in, out);
}

void sw_all_reduce_max(const sw_group *group, uint64_t n_elems, sw_dtype dtype, const void *in, void *out)
{
    sw_enter(group, SW_CALL_ALL_REDUCE, dtype, SW_COMBINE_MAX, 1, &n_elems);
    reduce(group, n_elems, dtype, SW_COMBINE_MAX, in, out);
}

/* A round of a view through the first bytes of the stage. */
void sw_all_reduce_view(const sw_group *group, sw_dtype dtype, sw_combine_op op, const sw_view *in,
                        const sw_view *out)
{
    const sw_view source = sw_view_joined(in);
    const sw_view target = sw_view_joined(out);
    uint64_t n = sw_view_elems(in);
    uint64_t piece = group->work->stage_bytes / 2 / sw_width_of(dtype);
    /* The second half of the stage is what the reduction of the first one uses. */
    sw_work *work = group->work;
    char *row = work->stage;

    sw_enter(group, SW_CALL_ALL_REDUCE, dtype, op, in->n_dims, in->dims);
    work->stage += work->stage_bytes / 2;
    work->stage_bytes /= 2;
    for (uint64_t first = 0; first < n; first += piece) {
        uint64_t length = n - first < piece ? n - first : piece;
        sw_view_pack(row, &source, first, length);
        reduce(group, length, dtype, op, row, row);
        sw_view_unpack(&target, first, length, row);
    }
    work->stage = row;
    work->stage_bytes *= 2;
}

/* ---- all_to_all ---- */

static void move_across(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                        const sw_view *out)
{
    if (sw_copies_across(group)) {
        sw_copy_across(group, cut_dim, joined_dim, in, out);
        return;
    }
    sw_lanes_of_all_to_all(group, cut_dim, joined_dim, in, out);
    sw_lane_cut cut = sw_lane_cut_of(group, in->width, false);
    sw_lanes_move(group, &cut);
}

/* `is_back`: from rows of the first dim to rows of the second one. */
static void all_to_all(const sw_group *group, const sw_across *across, bool is_back, sw_dtype dtype,
                       const void *in, void *out)
{
    uint64_t slot = sw_slot_across(group, across);

    sw_enter_across(group, dtype, across, is_back);
    if (!sw_copies_across(group) && sw_slots_are_short(group, slot, sw_width_of(dtype))) {
        sw_along first = sw_slots_first(group, across);
        sw_along second = sw_slots_second(group, across);
        sw_slots_swap(group, slot, sw_width_of(dtype), is_back ? &second : &first, in,
                      is_back ? &first : &second, out);
        return;
    }
    sw_view source = sw_across_view(group, across, is_back, dtype, in);
    sw_view target = sw_across_view(group, across, !is_back, dtype, out);
    move_across(group, is_back ? 3 : 1, is_back ? 1 : 3, &source, &target);
}

void sw_all_to_all(const sw_group *group, const sw_across *across, sw_dtype dtype, const void *in, void *out)
{
    all_to_all(group, across, false, dtype, in, out);
}

void sw_all_to_all_back(const sw_group *group, const sw_across *across, sw_dtype dtype, const void *in,
                        void *out)
{
    all_to_all(group, across, true, dtype, in, out);
}

void sw_all_to_all_view(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, sw_dtype dtype,
                        const sw_view *in, const sw_view *out)
{
    uint64_t dims[SW_VIEW_MAX_DIMS];

    memcpy(dims, in->dims, sizeof dims);
    dims[joined_dim] = out->dims[joined_dim];
    sw_enter(group, SW_CALL_ALL_TO_ALL, dtype, SW_COMBINE_SUM, in->n_dims, dims);
    move_across(group, cut_dim, joined_dim, in, out);
}

/* ---- the others ---- */

void sw_slice(const sw_group *group, const sw_along *along, sw_dtype dtype, const void *in, void *out)
{
    sw_view whole = sw_along_view(along, along->extent, dtype, in);
    sw_view target = sw_along_view(along, sw_own_rows(group, along->extent), dtype, out);
    sw_view own = sw_view_rows(&whole, 1, sw_rows_of(group, along->extent, group->index));

    sw_view_copy(&target, &own);
}

void sw_broadcast(const sw_group *group, uint32_t root, uint64_t n_elems, sw_dtype dtype, void *values)
{
    uint64_t most = group->work->most_elems;
    uint32_t width = sw_width_of(dtype);

    sw_enter(group, SW_CALL_BROADCAST, dtype, SW_COMBINE_SUM, 2, (const uint64_t[]){n_elems, root});
    for (uint64_t first = 0; first < n_elems && group->size > 1; first += most) {
        int n = (int)(n_elems - first < most ? n_elems - first : most);
        MPI_Bcast((char *)values + first * width, n, sw_elem_type(width), (int)root, group->mpi);
    }
}

void sw_exchange_counts(const sw_group *group, uint32_t n_each, const uint64_t *sent, uint64_t *received)
{
    sw_enter(group, SW_CALL_EXCHANGE, SW_DTYPE_U64, SW_COMBINE_SUM, 1, (const uint64_t[]){n_each});
    if (group->size == 1)
        memcpy(received, sent, n_each * sizeof *sent);
    else
        MPI_Alltoall(sent, (int)n_each, MPI_UINT64_T, received, (int)n_each, MPI_UINT64_T, group->mpi);
}

void sw_exchange_elems(const sw_group *group, sw_dtype dtype, const void *sent, const uint64_t *n_sent,
                       void *received, const uint64_t *n_received)
{
    sw_enter(group, SW_CALL_EXCHANGE, dtype, SW_COMBINE_SUM, 0, NULL);
    sw_lanes_of_exchange(group, sw_width_of(dtype), sent, n_sent, received, n_received);
    sw_lane_cut cut = sw_lane_cut_of(group, sw_width_of(dtype), true);
    sw_lanes_move(group, &cut);
}
