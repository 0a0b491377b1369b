/* Lanes at work (comm/lanes.h): in each round a piece of every lane is posted, awaited and put in its place.
 */
#include "comm/lanes.h"

enum { TAG = 1 };

MPI_Datatype sw_elem_type(uint32_t width)
{
    switch (width) {
    case 1:
        return MPI_UINT8_T;
    case 2:
        return MPI_UINT16_T;
    case 4:
        return MPI_UINT32_T;
    default:
        return MPI_UINT64_T;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void sw_lane_set(const sw_group *group, uint32_t member, const sw_view *sent, const sw_view *received)
{
    sw_lane *lane = &group->work->lanes[member];

    lane->sent = sw_view_joined(sent);
    lane->received = sw_view_joined(received);
    lane->n_sent = sw_view_elems(sent);
    lane->n_received = sw_view_elems(received);
}

sw_lane_cut sw_lane_cut_of(const sw_group *group, uint32_t width, bool is_whole)
{
    const sw_work *work = group->work;
    sw_lane_cut cut = {.width = width, .type = sw_elem_type(width)};
    uint64_t longest = 0;

    cut.piece = least(work->most_elems, work->stage_bytes / 2 / group->size / width);
    if (is_whole)
        cut.piece = work->most_elems;
    for (uint32_t m = 0; m < group->size; m++) {
        const sw_lane *lane = &work->lanes[m];
        longest = lane->n_sent > longest ? lane->n_sent : longest;
        longest = lane->n_received > longest ? lane->n_received : longest;
    }
    cut.n_rounds = (longest + cut.piece - 1) / cut.piece;
    return cut;
}

/* Elements of a lane's part in a round. */
static uint64_t in_round(const sw_lane_cut *cut, uint64_t n, uint64_t round)
{
    uint64_t first = round * cut->piece;
    return first < n ? least(cut->piece, n - first) : 0;
}

/* A member's place in the stage: in the first half what is sent, in the second what is received. */
static char *staged(const sw_group *group, const sw_lane_cut *cut, uint32_t member, bool is_received)
{
    return group->work->stage + ((is_received ? group->size : 0) + member) * cut->piece * cut->width;
}

/* Where a piece of a view is to be sent from: in place, or packed. */
static const void *piece_to_send(const sw_group *group, const sw_lane_cut *cut, uint32_t member,
                                 uint64_t round)
{
    const sw_lane *lane = &group->work->lanes[member];
    uint64_t first = round * cut->piece;

    if (sw_view_is_dense(&lane->sent))
        return lane->sent.data + first * cut->width;
    char *room = staged(group, cut, member, false);
    sw_view_pack(room, &lane->sent, first, in_round(cut, lane->n_sent, round));
    return room;
}

static char *place_to_receive(const sw_group *group, const sw_lane_cut *cut, uint32_t member, uint64_t round,
                              bool is_staged)
{
    const sw_lane *lane = &group->work->lanes[member];

    if (!is_staged && sw_view_is_dense(&lane->received))
        return lane->received.data + round * cut->piece * cut->width;
    return staged(group, cut, member, true);
}

int sw_lanes_post(const sw_group *group, const sw_lane_cut *cut, uint64_t round, bool is_combined)
{
    sw_work *work = group->work;
    int n_requests = 0;

    for (uint32_t i = 1; i < group->size; i++) {
        uint32_t m = (group->index + group->size - i) % group->size;
        uint64_t n = in_round(cut, work->lanes[m].n_received, round);
        if (n != 0)
            MPI_Irecv(place_to_receive(group, cut, m, round, is_combined), (int)n, cut->type, (int)m, TAG,
                      group->mpi, &work->requests[n_requests++]);
    }
    for (uint32_t i = 1; i < group->size; i++) {
        uint32_t m = (group->index + i) % group->size;
        uint64_t n = in_round(cut, work->lanes[m].n_sent, round);
        if (n != 0)
            MPI_Isend(piece_to_send(group, cut, m, round), (int)n, cut->type, (int)m, TAG, group->mpi,
                      &work->requests[n_requests++]);
    }
    return n_requests;
}

void sw_lanes_put(const sw_group *group, const sw_lane_cut *cut, uint64_t round)
{
    for (uint32_t m = 0; m < group->size; m++) {
        const sw_lane *lane = &group->work->lanes[m];
        uint64_t n = in_round(cut, lane->n_received, round);
        if (m != group->index && n != 0 && !sw_view_is_dense(&lane->received))
            sw_view_unpack(&lane->received, round * cut->piece, n, staged(group, cut, m, true));
    }
}

void sw_lanes_put_own(const sw_group *group)
{
    const sw_lane *own = &group->work->lanes[group->index];

    if (own->received.data != own->sent.data) /* it may be in its place already */
        sw_view_copy(&own->received, &own->sent);
}

void sw_lanes_put_combined(const sw_group *group, const sw_lane_cut *cut, uint64_t round, sw_dtype dtype,
                           sw_combine_op op)
{
    sw_work *work = group->work;
    const sw_lane *own = &work->lanes[group->index];
    const sw_view *out = &own->received;
    bool is_dense = sw_view_is_dense(out);
    uint64_t n = in_round(cut, own->n_received, round);
    uint64_t first = round * cut->piece;

    if (n == 0)
        return;
    for (uint32_t m = 0; m < group->size; m++)
        work->parts[m] =
            m == group->index ? piece_to_send(group, cut, m, round) : staged(group, cut, m, true);
    void *result = is_dense ? out->data + first * cut->width : staged(group, cut, group->index, true);
    sw_combine(result, work->parts, group->size, n, dtype, op);
    if (!is_dense)
        sw_view_unpack(out, first, n, result);
}

void sw_lanes_move(const sw_group *group, const sw_lane_cut *cut)
{
    sw_lanes_put_own(group);
    for (uint64_t round = 0; round < cut->n_rounds && group->size > 1; round++) {
        int n_requests = sw_lanes_post(group, cut, round, false);
        MPI_Waitall(n_requests, group->work->requests, MPI_STATUSES_IGNORE);
        sw_lanes_put(group, cut, round);
    }
}

void sw_lanes_combine(const sw_group *group, const sw_lane_cut *cut, sw_dtype dtype, sw_combine_op op)
{
    for (uint64_t round = 0; round < cut->n_rounds; round++) {
        int n_requests = sw_lanes_post(group, cut, round, true);
        MPI_Waitall(n_requests, group->work->requests, MPI_STATUSES_IGNORE);
        sw_lanes_put_combined(group, cut, round, dtype, op);
    }
}
