/*
 * Collectives on tensors that lie in a window (comm/window.h): all come, each member works on its part of
 * what everybody has, and where a result is read by all, all come again.
 */
#include "comm/parts.h"
#include "comm/window.h"
#include "mesh/shard.h"

enum { LINE = 64 };

char *sw_window_room(const sw_window *window, uint32_t member)
{
    return window->rooms + member * window->room_bytes;
}

char *sw_window_own(const sw_window *window)
{
    return sw_window_room(window, window->group->index);
}

sw_range sw_window_part(const sw_group *group, uint64_t n, uint32_t width, uint32_t member)
{
    uint64_t unit = LINE / width;
    sw_range part = sw_shard_range(n / unit + (n % unit != 0), group->size, member);

    part.begin = part.begin * unit < n ? part.begin * unit : n;
    part.end = part.end * unit < n ? part.end * unit : n;
    return part;
}

/* Combine `n` elements that begin `first` behind the tensor at `in`, of all rooms. */
static void combine_rooms(sw_window *window, const void *in, size_t first, uint64_t n, sw_dtype dtype,
                          sw_combine_op op, void *out)
{
    size_t place = (size_t)((const char *)in - sw_window_own(window)) + first;

    for (uint32_t m = 0; m < window->group->size; m++)
        window->parts[m] = sw_window_room(window, m) + place;
    sw_combine(out, window->parts, window->group->size, n, dtype, op);
}

void sw_window_meet(sw_window *window)
{
    sw_barrier_pass(&window->barrier);
}

void sw_window_all_reduce(sw_window *window, uint64_t n_elems, sw_dtype dtype, sw_combine_op op,
                          const void *in, void *out)
{
    uint32_t width = sw_width_of(dtype);
    sw_range part = sw_window_part(window->group, n_elems, width, window->group->index);
    size_t first = part.begin * width;

    sw_enter(window->group, SW_CALL_ALL_REDUCE, dtype, op, 1, &n_elems);
    sw_barrier_pass(&window->barrier);
    if (part.begin < part.end)
        combine_rooms(window, in, first, part.end - part.begin, dtype, op, (char *)out + first);
    sw_barrier_pass(&window->barrier);
}

void sw_window_all_gather(sw_window *window, const sw_along *along, sw_dtype dtype)
{
    sw_enter_along(window->group, SW_CALL_ALL_GATHER, dtype, along);
    sw_barrier_pass(&window->barrier);
}

void sw_window_reduce_scatter(sw_window *window, const sw_along *along, sw_dtype dtype, const void *in,
                              void *out)
{
    uint32_t width = sw_width_of(dtype);
    sw_range rows = sw_rows_of(window->group, along->extent, window->group->index);
    uint64_t n = (rows.end - rows.begin) * along->n_inner;
    char *to = out;

    sw_enter_along(window->group, SW_CALL_REDUCE_SCATTER, dtype, along);
    sw_barrier_pass(&window->barrier);
    for (uint64_t o = 0; o < along->n_outer && n > 0; o++) {
        size_t first = (o * along->extent + rows.begin) * along->n_inner * width;
        combine_rooms(window, in, first, n, dtype, SW_COMBINE_SUM, to);
        to += n * width;
    }
    sw_barrier_pass(&window->barrier);
}
