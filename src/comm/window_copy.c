/* Collectives through the group's window (comm/window_copy.h). */
#include "comm/window_copy.h"

#include <string.h>

#include "comm/parts.h"
#include "comm/window.h"

enum {
    THIRDS = 3,
    THIRD_BYTES = 256 << 10,            /* what one member writes stays in its cache until it is read */
    THIRD_BYTES_IN_A_CROWD = 512 << 10, /* to meet is dear where ranks take turns on a core */
    SMALL_BYTES = 32 << 10              /* of all members: up to here everybody combines everything */
};

sw_window *sw_window_for_copies(const sw_group *group)
{
    size_t least = (size_t)group->size * sizeof(uint64_t); /* an element for every member */
    size_t third = group->work->is_crowded ? THIRD_BYTES_IN_A_CROWD : THIRD_BYTES;

    if (group->size == 1)
        return NULL;
    sw_window *window = sw_window_with_guests(group, THIRDS * (least > third ? least : third));
    if (window != NULL && window->hosts.n == group->size) { /* nobody shares anything */
        sw_window_destroy(window);
        return NULL;
    }
    return window;
}

static bool is_one_host(const sw_window *window)
{
    return window->hosts.n == 1;
}

bool sw_copies_across(const sw_group *group)
{
    return group->work->window != NULL && is_one_host(group->work->window);
}

/* ---- turns ---- */

static uint64_t third_elems(const sw_window *window, uint32_t width)
{
    return window->room_bytes / THIRDS / width;
}

/* The third of a member's room that is written in turn `turn`. */
static char *room_at(const sw_window *window, uint32_t member, uint64_t turn)
{
    return sw_window_room(window, member) + turn % THIRDS * (window->room_bytes / THIRDS);
}

/* In this turn. */
static char *room_of(const sw_window *window, uint32_t member)
{
    return room_at(window, member, window->n_turns);
}

static uint64_t left_of(uint64_t n, uint64_t first, uint64_t piece)
{
    uint64_t left = first < n ? n - first : 0;
    return left < piece ? left : piece;
}

/* The member of a lane that comes i-th from here, so that not all read the same room at once. */
static uint32_t member_at(const sw_group *group, uint32_t i)
{
    return (group->index + i) % group->size;
}

/* Elements of the longest part that a member gets, or gives to everybody. */
static uint64_t longest(const sw_group *group, bool is_received)
{
    uint64_t most = 0;

    for (uint32_t m = 0; m < group->size; m++) {
        const sw_lane *lane = &group->work->lanes[m];
        uint64_t n = is_received ? lane->n_received : lane->n_sent;
        most = n > most ? n : most;
    }
    return most;
}

/* `n` elements of a member, in a row in its room, for sw_hosts_spread(). */
static void set_row(const sw_window *window, uint32_t member, char *at, uint64_t n, uint32_t width)
{
    window->hosts.rows[member] = sw_view_dense(at, width, 1, &n);
}

/* The rooms of the members here in this turn, from a place in them on, for sw_hosts_combine(). */
static void set_rooms(sw_window *window, size_t from)
{
    const sw_hosts *hosts = &window->hosts;

    for (uint32_t p = 0; p < hosts->here.size; p++)
        window->parts[p] = room_of(window, hosts->members[hosts->first[hosts->own] + p]) + from;
}

/* ---- all_gather ---- */

void sw_copy_gather(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out)
{
    sw_window *window = group->work->window;
    const sw_lane *lanes = group->work->lanes;
    uint64_t piece = third_elems(window, in->width);

    sw_lanes_of_gather(group, dim, in, out);
    sw_lanes_put_own(group);
    uint64_t n = longest(group, true);
    for (uint64_t first = 0; first < n; first += piece) {
        const sw_lane *own = &lanes[group->index];
        window->n_turns++;
        sw_view_pack(room_of(window, group->index), &own->sent, first, left_of(own->n_sent, first, piece));
        for (uint32_t m = 0; m < group->size; m++)
            set_row(window, m, room_of(window, m), left_of(lanes[m].n_received, first, piece), in->width);
        sw_hosts_spread(&window->hosts);
        sw_window_meet(window);
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_received, first, piece);
            sw_view_unpack(&lanes[m].received, first, length, room_of(window, m));
        }
    }
}

/* ---- all_to_all ---- */

void sw_copy_across(const sw_group *group, uint32_t cut_dim, uint32_t joined_dim, const sw_view *in,
                    const sw_view *out)
{
    sw_window *window = group->work->window;
    const sw_lane *lanes = group->work->lanes;
    uint64_t piece = third_elems(window, in->width) / group->size;
    size_t slot = piece * in->width;
    uint64_t most = sw_longest_across(group, cut_dim, joined_dim, in, out);

    sw_lanes_of_all_to_all(group, cut_dim, joined_dim, in, out);
    for (uint64_t first = 0; first < most; first += piece) {
        window->n_turns++;
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_sent, first, piece);
            sw_view_pack(room_of(window, group->index) + m * slot, &lanes[m].sent, first, length);
        }
        sw_barrier_arrive(&window->barrier);
        if (first == 0)
            sw_lanes_put_own(group); /* nobody waits for it */
        sw_barrier_wait(&window->barrier);
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_received, first, piece);
            sw_view_unpack(&lanes[m].received, first, length, room_of(window, m) + group->index * slot);
        }
    }
}

/* ---- reduce_scatter ---- */

/* One piece of what this rank gets, and of what the members here have for those of other hosts. */
static void combine_piece(const sw_group *group, sw_dtype dtype, uint64_t first, uint64_t piece)
{
    sw_window *window = group->work->window;
    const sw_lane *own = &group->work->lanes[group->index];
    uint32_t width = own->sent.width;
    size_t slot = piece * width;
    uint64_t n = left_of(own->n_sent, first, piece);
    char *room = room_of(window, group->index) + group->index * slot; /* nobody else looks at it */
    bool is_in_place = is_one_host(window) && sw_view_is_dense(&own->sent);
    char *result = sw_view_is_dense(&own->received) ? own->received.data + first * width : room;

    if (!is_in_place)
        sw_view_pack(room, &own->sent, first, n);
    for (uint32_t m = 0; m < group->size; m++) {
        uint64_t length = left_of(group->work->lanes[m].n_sent, first, piece);
        window->hosts.parts[m] = (sw_host_part){is_one_host(window) ? 0 : m * slot, length, length, length};
    }
    set_rooms(window, is_one_host(window) ? group->index * slot : 0);
    if (is_in_place)
        window->parts[window->hosts.here.index] = own->sent.data + first * width;
    sw_hosts_combine(&window->hosts, window->parts, dtype, SW_COMBINE_SUM, result);
    if (result == room)
        sw_view_unpack(&own->received, first, n, result);
}

void sw_copy_scatter(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                     const sw_view *out)
{
    sw_window *window = group->work->window;
    const sw_lane *lanes = group->work->lanes;
    uint64_t piece = third_elems(window, in->width) / group->size;
    size_t slot = piece * in->width;

    sw_lanes_of_scatter(group, dim, in, out);
    uint64_t n = longest(group, false);
    for (uint64_t first = 0; first < n; first += piece) {
        window->n_turns++;
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_sent, first, piece);
            sw_view_pack(room_of(window, group->index) + m * slot, &lanes[m].sent, first, length);
        }
        sw_window_meet(window);
        combine_piece(group, dtype, first, piece);
    }
}

/* ---- all_reduce ---- */

/* Few elements: everybody combines all of them. */
static void reduce_small(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in,
                         char *out)
{
    sw_window *window = group->work->window;
    uint32_t width = sw_width_of(dtype);

    window->n_turns++;
    memcpy(room_of(window, group->index), in, n * width);
    for (uint32_t m = 0; m < group->size; m++) {
        window->parts[m] = room_of(window, m);
        set_row(window, m, room_of(window, m), n, width);
    }
    sw_hosts_spread(&window->hosts);
    sw_window_meet(window);
    sw_hosts_combine_here(&window->hosts, window->parts, n, dtype, op, out);
}

/* A piece is put in the own room, but for the part that only this member combines, and where it is. */
static void put_piece(const sw_group *group, uint64_t n, size_t width, const char *in)
{
    char *room = room_of(group->work->window, group->index);
    sw_range own = sw_window_part(group, n, (uint32_t)width, group->index);

    if (!is_one_host(group->work->window))
        own.end = own.begin;
    memcpy(room, in, own.begin * width);
    memcpy(room + own.end * width, in + own.end * width, (n - own.end) * width);
}

/*
 * After the turn: this member's part, combined, takes its place in the own room, where nobody else looks yet,
 * and in those that it has on other hosts.
 */
static void combine_part(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in)
{
    sw_window *window = group->work->window;
    const sw_hosts *hosts = &window->hosts;
    uint32_t width = sw_width_of(dtype);

    for (uint32_t m = 0; m < group->size; m++) {
        sw_range part = sw_window_part(group, n, width, m);
        uint64_t length = part.end - part.begin;
        hosts->parts[m] = (sw_host_part){part.begin * width, length, length, length};
        set_row(window, m, room_of(window, m) + part.begin * width, length, width);
    }
    set_rooms(window, 0);
    if (is_one_host(window))
        window->parts[hosts->here.index] = in;
    sw_hosts_combine(hosts, window->parts, dtype, op,
                     room_of(window, group->index) + hosts->parts[group->index].at);
    sw_hosts_spread(hosts);
}

/* After the next turn: all parts of the piece of turn `turn`. */
static void take_piece(const sw_group *group, uint64_t n, size_t width, uint64_t turn, char *out)
{
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t m = member_at(group, i);
        sw_range part = sw_window_part(group, n, (uint32_t)width, m);
        memcpy(out + part.begin * width, room_at(group->work->window, m, turn) + part.begin * width,
               (part.end - part.begin) * width);
    }
}

/* A piece is combined in one turn and taken in the next, while the one behind it is combined. */
static void reduce_large(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in,
                         char *out)
{
    sw_window *window = group->work->window;
    size_t width = sw_width_of(dtype);
    uint64_t piece = third_elems(window, (uint32_t)width);

    for (uint64_t first = 0; first < n + piece; first += piece) { /* one turn more than pieces */
        uint64_t length = left_of(n, first, piece);
        const char *from = in + (first < n ? first : n) * width;
        window->n_turns++;
        put_piece(group, length, width, from);
        sw_window_meet(window);
        combine_part(group, length, dtype, op, from);
        if (first > 0)
            take_piece(group, left_of(n, first - piece, piece), width, window->n_turns - 1,
                       out + (first - piece) * width);
    }
}

void sw_copy_reduce(const sw_group *group, uint64_t n_elems, sw_dtype dtype, sw_combine_op op, const char *in,
                    char *out)
{
    uint32_t width = sw_width_of(dtype);
    uint64_t most = group->work->stage_bytes / 2 / width / group->size; /* of all hosts, as F32 */
    uint64_t small = left_of(SMALL_BYTES / width / group->size, 0, third_elems(group->work->window, width));

    if (n_elems != 0)
        (n_elems <= small && n_elems <= most ? reduce_small : reduce_large)(group, n_elems, dtype, op, in,
                                                                            out);
}
