/* Collectives through the group's window (comm/window_copy.h). */
#include "comm/window_copy.h"

#include <string.h>

#include "comm/parts.h"
#include "comm/window.h"

enum {
    HALF_BYTES = 256 << 10, /* of a room: what one member writes stays in its cache until it is read */
    SMALL_BYTES = 32 << 10  /* of all members: up to here everybody combines everything */
};

sw_window *sw_window_for_copies(const sw_group *group)
{
    size_t least = (size_t)group->size * sizeof(uint64_t); /* an element for every member */
    size_t half = least > HALF_BYTES ? least : HALF_BYTES;

    return group->size == 1 ? NULL : sw_window_try(group, 2 * half, 0);
}

/* ---- turns ---- */

static uint64_t half_elems(const sw_window *window, uint32_t width)
{
    return window->room_bytes / 2 / width;
}

static void next_turn(sw_window *window)
{
    window->n_turns++;
}

/* The half of a member's room that is used in this turn. */
static char *half_of(const sw_window *window, uint32_t member)
{
    return sw_window_room(window, member) + window->n_turns % 2 * (window->room_bytes / 2);
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

/* ---- all_gather ---- */

void sw_copy_gather(const sw_group *group, uint32_t dim, const sw_view *in, const sw_view *out)
{
    sw_window *window = group->work->window;
    const sw_lane *lanes = group->work->lanes;
    uint64_t piece = half_elems(window, in->width);

    sw_lanes_of_gather(group, dim, in, out);
    sw_lanes_put_own(group);
    uint64_t n = longest(group, true);
    for (uint64_t first = 0; first < n; first += piece) {
        const sw_lane *own = &lanes[group->index];
        next_turn(window);
        sw_view_pack(half_of(window, group->index), &own->sent, first, left_of(own->n_sent, first, piece));
        sw_window_meet(window);
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_received, first, piece);
            sw_view_unpack(&lanes[m].received, first, length, half_of(window, m));
        }
    }
}

/* ---- reduce_scatter ---- */

/* One piece of what this rank gets. */
static void combine_piece(const sw_group *group, sw_dtype dtype, uint64_t first, uint64_t n, size_t slot)
{
    sw_window *window = group->work->window;
    const sw_lane *own = &group->work->lanes[group->index];
    char *room = half_of(window, group->index) + group->index * slot; /* nobody else looks at it */
    const char *mine = room;
    char *result = room;

    if (n == 0)
        return;
    if (sw_view_is_dense(&own->sent))
        mine = own->sent.data + first * own->sent.width;
    else
        sw_view_pack(room, &own->sent, first, n);
    if (sw_view_is_dense(&own->received))
        result = own->received.data + first * own->received.width;
    for (uint32_t m = 0; m < group->size; m++)
        window->parts[m] = m == group->index ? mine : half_of(window, m) + group->index * slot;
    sw_combine(result, window->parts, group->size, n, dtype, SW_COMBINE_SUM);
    if (result == room)
        sw_view_unpack(&own->received, first, n, result);
}

void sw_copy_scatter(const sw_group *group, uint32_t dim, sw_dtype dtype, const sw_view *in,
                     const sw_view *out)
{
    sw_window *window = group->work->window;
    const sw_lane *lanes = group->work->lanes;
    uint64_t piece = half_elems(window, in->width) / group->size;
    size_t slot = piece * in->width;

    sw_lanes_of_scatter(group, dim, in, out);
    uint64_t n = longest(group, false);
    for (uint64_t first = 0; first < n; first += piece) {
        next_turn(window);
        for (uint32_t i = 1; i < group->size; i++) {
            uint32_t m = member_at(group, i);
            uint64_t length = left_of(lanes[m].n_sent, first, piece);
            sw_view_pack(half_of(window, group->index) + m * slot, &lanes[m].sent, first, length);
        }
        sw_window_meet(window);
        combine_piece(group, dtype, first, left_of(lanes[group->index].n_sent, first, piece), slot);
    }
}

/* ---- all_reduce ---- */

/* Few elements: everybody combines all of them. */
static void reduce_small(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in,
                         char *out)
{
    sw_window *window = group->work->window;

    next_turn(window);
    memcpy(half_of(window, group->index), in, n * sw_width_of(dtype));
    sw_window_meet(window);
    for (uint32_t m = 0; m < group->size; m++)
        window->parts[m] = half_of(window, m);
    sw_combine(out, window->parts, group->size, n, dtype, op);
}

/* One piece: each member combines its part and leaves it in its own room, where nobody looks for it before.
 */
static void reduce_piece(const sw_group *group, uint64_t n, sw_dtype dtype, sw_combine_op op, const char *in,
                         char *out)
{
    sw_window *window = group->work->window;
    size_t width = sw_width_of(dtype);
    char *room = half_of(window, group->index);
    sw_range own = sw_window_part(group, n, (uint32_t)width, group->index);

    memcpy(room, in, own.begin * width);
    memcpy(room + own.end * width, in + own.end * width, (n - own.end) * width);
    sw_window_meet(window);
    for (uint32_t m = 0; m < group->size; m++)
        window->parts[m] = (m == group->index ? in : half_of(window, m)) + own.begin * width;
    sw_combine(room + own.begin * width, window->parts, group->size, own.end - own.begin, dtype, op);
    sw_window_meet(window);
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t m = member_at(group, i);
        sw_range part = sw_window_part(group, n, (uint32_t)width, m);
        memcpy(out + part.begin * width, half_of(window, m) + part.begin * width,
               (part.end - part.begin) * width);
    }
}

void sw_copy_reduce(const sw_group *group, uint64_t n_elems, sw_dtype dtype, sw_combine_op op, const char *in,
                    char *out)
{
    size_t width = sw_width_of(dtype);
    uint64_t piece = half_elems(group->work->window, (uint32_t)width);
    uint64_t small = left_of(SMALL_BYTES / width / group->size, 0, piece);

    if (n_elems == 0)
        return;
    if (n_elems <= small) {
        reduce_small(group, n_elems, dtype, op, in, out);
        return;
    }
    for (uint64_t first = 0; first < n_elems; first += piece) {
        next_turn(group->work->window);
        reduce_piece(group, left_of(n_elems, first, piece), dtype, op, in + first * width,
                     out + first * width);
    }
}
