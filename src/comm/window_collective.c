/*
 * Collectives on tensors that lie in a window (comm/window.h): all come, each member works on its part of
 * what everybody has, and where a result is read by all, all come again. Between hosts, what was worked out
 * or written here goes to the others in between.
 */
#include "comm/parts.h"
#include "comm/window.h"
#include "mesh/shard.h"

enum { LINE = 64 };

char *sw_window_room(const sw_window *window, uint32_t member)
{
    return window->rooms + window->hosts.seat_of[member] * window->room_bytes;
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

/* The parts of `window->hosts` are set: this rank's, combined over the tensors at the place of `in`. */
static void combine_rooms(sw_window *window, const void *in, sw_dtype dtype, sw_combine_op op, void *out)
{
    const sw_hosts *hosts = &window->hosts;
    size_t place = (size_t)((const char *)in - sw_window_own(window));

    for (uint32_t p = 0; p < hosts->here.size; p++)
        window->parts[p] = window->rooms + p * window->room_bytes + place;
    sw_hosts_combine(hosts, window->parts, dtype, op, out);
}

void sw_window_meet(sw_window *window)
{
    sw_barrier_pass(&window->barrier);
}

void sw_window_all_reduce(sw_window *window, uint64_t n_elems, sw_dtype dtype, sw_combine_op op,
                          const void *in, void *out)
{
    const sw_group *group = window->group;
    uint32_t width = sw_width_of(dtype);

    sw_enter(group, SW_CALL_ALL_REDUCE, dtype, op, 1, &n_elems);
    for (uint32_t m = 0; m < group->size; m++) {
        sw_range part = sw_window_part(group, n_elems, width, m);
        uint64_t n = part.end - part.begin;
        window->hosts.parts[m] = (sw_host_part){part.begin * width, n, n, n};
        window->hosts.rows[m] = sw_view_dense((char *)out + part.begin * width, width, 1, &n);
    }
    sw_barrier_pass(&window->barrier);
    combine_rooms(window, in, dtype, op, (char *)out + window->hosts.parts[group->index].at);
    sw_hosts_spread(&window->hosts);
    sw_barrier_pass(&window->barrier);
}

void sw_window_all_gather(sw_window *window, const sw_along *along, sw_dtype dtype, void *whole)
{
    const sw_view all = sw_along_view(along, along->extent, dtype, whole);

    sw_enter_along(window->group, SW_CALL_ALL_GATHER, dtype, along);
    for (uint32_t m = 0; m < window->group->size; m++)
        window->hosts.rows[m] = sw_view_rows(&all, 1, sw_rows_of(window->group, along->extent, m));
    sw_hosts_spread(&window->hosts);
    sw_barrier_pass(&window->barrier);
}

void sw_window_reduce_scatter(sw_window *window, const sw_along *along, sw_dtype dtype, const void *in,
                              void *out)
{
    const sw_group *group = window->group;

    sw_enter_along(group, SW_CALL_REDUCE_SCATTER, dtype, along);
    for (uint32_t m = 0; m < group->size; m++) {
        sw_range rows = sw_rows_of(group, along->extent, m);
        uint64_t length = (rows.end - rows.begin) * along->n_inner;
        window->hosts.parts[m] =
            (sw_host_part){rows.begin * along->n_inner * sw_width_of(dtype), along->n_outer * length, length,
                           along->extent * along->n_inner};
    }
    sw_barrier_pass(&window->barrier);
    combine_rooms(window, in, dtype, SW_COMBINE_SUM, out);
    sw_barrier_pass(&window->barrier);
}
