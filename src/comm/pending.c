/*
 * Collectives begun and finished later (comm/pending.h): one round of lanes, posted at the beginning. Only
 * sums that MPI makes itself are MPI's own non-blocking collective.
 */
#include "comm/pending.h"

#include "base/alloc.h"
#include "base/status.h"
#include "comm/parts.h"

typedef enum finish_kind {
    FINISH_NOTHING = 0, /* but waiting */
    FINISH_MOVE,
    FINISH_COMBINE,
    FINISH_REDUCE, /* combine, then gather all parts */
    FINISH_GATHER
} finish_kind;

struct sw_pending {
    sw_group group; /* a copy, with working memory of its own */
    char *stage;
    int n_requests;
    finish_kind finish;
    sw_lane_cut cut;
    sw_dtype dtype;
    uint64_t n_elems; /* of an all_reduce */
    char *out;
};

sw_status sw_pending_create(sw_pending **out, const sw_group *group, size_t stage_bytes, sw_error *err)
{
    size_t least = (size_t)group->size * 2 * sizeof(uint64_t); /* an element for every lane */
    size_t n_bytes = stage_bytes < least ? least : stage_bytes;
    sw_pending *made = sw_alloc_zero(1, sizeof *made);

    if (made != NULL)
        made->stage = sw_alloc(n_bytes);
    if (made == NULL || made->stage == NULL) {
        sw_pending_destroy(made);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a pending collective of %zu bytes",
                       stage_bytes);
    }
    made->group = *group;
    made->group.work = NULL;
    sw_status status = sw_work_create(&made->group.work, group->size, made->stage, n_bytes, err);
    if (status != SW_OK) {
        sw_pending_destroy(made);
        return status;
    }
    made->group.work->most_elems = group->work->most_elems;
    made->group.work->compares_calls = group->work->compares_calls;
    made->group.work->patience = group->work->patience;
    *out = made;
    return SW_OK;
}

size_t sw_pending_stage(const sw_group *group, uint64_t part_elems, sw_dtype dtype)
{
    return (size_t)(part_elems * 2 * group->size * sw_width_of(dtype));
}

void sw_pending_destroy(sw_pending *pending)
{
    if (pending == NULL)
        return;
    sw_work_destroy(pending->group.work);
    sw_free(pending->stage);
    sw_free(pending);
}

/* The lanes are set: post them, or move them at once. */
static void begin_move(sw_pending *pending, uint32_t width, bool is_whole)
{
    pending->cut = sw_lane_cut_of(&pending->group, width, is_whole);
    if (pending->cut.n_rounds > 1) {
        sw_lanes_move(&pending->group, &pending->cut);
        return;
    }
    pending->n_requests = sw_lanes_post(&pending->group, &pending->cut, 0, false);
    sw_lanes_put_own(&pending->group);
    pending->finish = FINISH_MOVE;
}

static void begin_combine(sw_pending *pending, sw_dtype dtype)
{
    pending->cut = sw_lane_cut_of(&pending->group, sw_width_of(dtype), false);
    pending->dtype = dtype;
    if (pending->cut.n_rounds > 1) {
        sw_lanes_combine(&pending->group, &pending->cut, dtype, SW_COMBINE_SUM);
        return;
    }
    pending->n_requests = sw_lanes_post(&pending->group, &pending->cut, 0, true);
    pending->finish = FINISH_COMBINE;
}

void sw_all_gather_begin(sw_pending *pending, const sw_along *along, sw_dtype dtype, const void *in,
                         void *out)
{
    const sw_group *group = &pending->group;
    sw_view source = sw_along_view(along, sw_own_rows(group, along->extent), dtype, in);
    sw_view target = sw_along_view(along, along->extent, dtype, out);

    sw_enter_along(group, SW_CALL_ALL_GATHER, dtype, along);
    sw_lanes_of_gather(group, 1, &source, &target);
    begin_move(pending, source.width, along->n_outer == 1);
}

void sw_reduce_scatter_begin(sw_pending *pending, const sw_along *along, sw_dtype dtype, const void *in,
                             void *out)
{
    const sw_group *group = &pending->group;
    sw_view source = sw_along_view(along, along->extent, dtype, in);
    sw_view target = sw_along_view(along, sw_own_rows(group, along->extent), dtype, out);

    sw_enter_along(group, SW_CALL_REDUCE_SCATTER, dtype, along);
    sw_lanes_of_scatter(group, 1, &source, &target);
    begin_combine(pending, dtype);
}

void sw_all_reduce_begin(sw_pending *pending, uint64_t n_elems, sw_dtype dtype, const void *in, void *out)
{
    const sw_group *group = &pending->group;
    const sw_along row = {1, n_elems, 1};
    sw_view source = sw_along_view(&row, n_elems, dtype, in);
    sw_view target = sw_along_view(&row, n_elems, dtype, out);
    sw_view own = sw_view_rows(&target, 1, sw_rows_of(group, n_elems, group->index));
    MPI_Datatype type = sw_sum_type(dtype, SW_COMBINE_SUM);

    if (group->size == 1 || n_elems > group->work->most_elems) {
        sw_all_reduce(group, n_elems, dtype, in, out);
        return;
    }
    sw_enter(group, SW_CALL_ALL_REDUCE, dtype, SW_COMBINE_SUM, 1, &n_elems);
    if (type != MPI_DATATYPE_NULL) {
        MPI_Iallreduce(in == out ? MPI_IN_PLACE : in, out, (int)n_elems, type, MPI_SUM, group->mpi,
                       group->work->requests);
        pending->n_requests = 1;
        return;
    }
    pending->n_elems = n_elems;
    pending->out = out;
    sw_lanes_of_scatter(group, 1, &source, &own);
    begin_combine(pending, dtype);
    pending->finish = pending->finish == FINISH_COMBINE ? FINISH_REDUCE : FINISH_GATHER;
}

static void begin_across(sw_pending *pending, const sw_across *across, bool is_back, sw_dtype dtype,
                         const void *in, void *out)
{
    const sw_group *group = &pending->group;
    sw_view source = sw_across_view(group, across, is_back, dtype, in);
    sw_view target = sw_across_view(group, across, !is_back, dtype, out);

    sw_enter_across(group, dtype, across, is_back);
    sw_lanes_of_all_to_all(group, is_back ? 3 : 1, is_back ? 1 : 3, &source, &target);
    begin_move(pending, source.width, false);
}

void sw_all_to_all_begin(sw_pending *pending, const sw_across *across, sw_dtype dtype, const void *in,
                         void *out)
{
    begin_across(pending, across, false, dtype, in, out);
}

void sw_all_to_all_back_begin(sw_pending *pending, const sw_across *across, sw_dtype dtype, const void *in,
                              void *out)
{
    begin_across(pending, across, true, dtype, in, out);
}

void sw_exchange_elems_begin(sw_pending *pending, sw_dtype dtype, const void *sent, const uint64_t *n_sent,
                             void *received, const uint64_t *n_received)
{
    sw_enter(&pending->group, SW_CALL_EXCHANGE, dtype, SW_COMBINE_SUM, 0, NULL);
    sw_lanes_of_exchange(&pending->group, sw_width_of(dtype), sent, n_sent, received, n_received);
    begin_move(pending, sw_width_of(dtype), true);
}

bool sw_pending_is_here(sw_pending *pending)
{
    int is_here = 1;

    MPI_Testall(pending->n_requests, pending->group.work->requests, &is_here, MPI_STATUSES_IGNORE);
    return is_here != 0;
}

/* The sum of this rank's part is made; now all parts go to everybody. */
static void gather_parts(sw_pending *pending)
{
    const sw_group *group = &pending->group;
    uint64_t first = sw_rows_of(group, pending->n_elems, group->index).begin;
    const sw_along row = {1, pending->n_elems, 1};

    sw_all_gather(group, &row, pending->dtype, pending->out + first * sw_width_of(pending->dtype),
                  pending->out);
}

void sw_pending_wait(sw_pending *pending)
{
    const sw_group *group = &pending->group;
    finish_kind finish = pending->finish;

    MPI_Waitall(pending->n_requests, group->work->requests, MPI_STATUSES_IGNORE);
    pending->n_requests = 0;
    pending->finish = FINISH_NOTHING;
    if (finish == FINISH_MOVE)
        sw_lanes_put(group, &pending->cut, 0);
    if (finish == FINISH_COMBINE || finish == FINISH_REDUCE)
        sw_lanes_put_combined(group, &pending->cut, 0, pending->dtype, SW_COMBINE_SUM);
    if (finish == FINISH_REDUCE || finish == FINISH_GATHER)
        gather_parts(pending);
}
