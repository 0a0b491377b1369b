/*
 * Slots (comm/slots.h): what is sent lies in the first half of the stage, what comes in the second, or either
 * in the tensor itself, where the parts lie there as slots do. What a slot has behind its part is moved too,
 * and not looked at.
 */
#include "comm/slots.h"

#include <string.h>

#include "comm/parts.h"

/* ---- shapes ---- */

sw_along sw_slots_first(const sw_group *group, const sw_across *across)
{
    uint64_t second = sw_own_rows(group, across->second);
    return (sw_along){across->n_outer, across->first, across->n_middle * second * across->n_inner};
}

sw_along sw_slots_second(const sw_group *group, const sw_across *across)
{
    uint64_t first = sw_own_rows(group, across->first);
    return (sw_along){across->n_outer * first * across->n_middle, across->second, across->n_inner};
}

/* The first member has the longest part. */
static uint64_t longest_rows(const sw_group *group, uint64_t extent)
{
    return sw_rows_of(group, extent, 0).end;
}

uint64_t sw_slot_along(const sw_group *group, const sw_along *along)
{
    return along->n_outer * longest_rows(group, along->extent) * along->n_inner;
}

uint64_t sw_slot_across(const sw_group *group, const sw_across *across)
{
    return across->n_outer * longest_rows(group, across->first) * across->n_middle *
           longest_rows(group, across->second) * across->n_inner;
}

bool sw_slots_are_short(const sw_group *group, uint64_t slot, uint32_t width)
{
    const sw_work *work = group->work;
    size_t half = work->stage_bytes / 2;
    size_t most = (half < work->short_bytes ? half : work->short_bytes) / group->size / width;

    return group->size > 1 && slot > 0 && slot <= most && slot <= work->most_elems;
}

/* ---- slots and rows ---- */

/* Do the parts of a tensor lie one behind the other, each as long as a slot? */
static bool are_slots(const sw_group *group, uint64_t slot, const sw_along *along)
{
    return along->n_outer == 1 && along->extent * along->n_inner == slot * group->size;
}

static char *stage_to_send(const sw_group *group)
{
    return group->work->stage;
}

static char *stage_to_receive(const sw_group *group, size_t slot_bytes)
{
    return group->work->stage + group->size * slot_bytes;
}

/*
 * Copy a member's rows between its slot and the tensor: a stretch for each index of the dims before. A tensor
 * without elements may have no memory.
 */
static void copy_rows(char *to, size_t to_step, const char *from, size_t from_step, size_t stretch,
                      uint64_t n)
{
    for (uint64_t o = 0; o < n && stretch > 0; o++)
        memcpy(to + o * to_step, from + o * from_step, stretch);
}

static void pack(const sw_group *group, const sw_along *along, size_t width, const char *tensor, char *slots,
                 size_t slot_bytes)
{
    size_t row = along->n_inner * width;

    for (uint32_t m = 0; m < group->size; m++) {
        sw_range rows = sw_rows_of(group, along->extent, m);
        size_t stretch = (rows.end - rows.begin) * row;
        copy_rows(slots + m * slot_bytes, stretch, tensor + rows.begin * row, along->extent * row, stretch,
                  along->n_outer);
    }
}

static void unpack(const sw_group *group, const sw_along *along, size_t width, const char *slots,
                   size_t slot_bytes, char *tensor)
{
    size_t row = along->n_inner * width;

    for (uint32_t m = 0; m < group->size; m++) {
        sw_range rows = sw_rows_of(group, along->extent, m);
        size_t stretch = (rows.end - rows.begin) * row;
        copy_rows(tensor + rows.begin * row, along->extent * row, slots + m * slot_bytes, stretch, stretch,
                  along->n_outer);
    }
}

/* Send the rows of `in`; what comes is in slots at `received`. */
static void swap(const sw_group *group, uint64_t slot, uint32_t width, const sw_along *from, const void *in,
                 void *received)
{
    MPI_Datatype type = sw_elem_type(width);
    const void *sent = in;

    if (!are_slots(group, slot, from)) {
        pack(group, from, width, in, stage_to_send(group), slot * width);
        sent = stage_to_send(group);
    }
    MPI_Alltoall(sent, (int)slot, type, received, (int)slot, type, group->mpi);
}

/* ---- together ---- */

void sw_slots_swap(const sw_group *group, uint64_t slot, uint32_t width, const sw_along *from, const void *in,
                   const sw_along *to, void *out)
{
    char *received = are_slots(group, slot, to) ? out : stage_to_receive(group, slot * width);

    swap(group, slot, width, from, in, received);
    if (received != out)
        unpack(group, to, width, received, slot * width, out);
}

void sw_slots_gather(const sw_group *group, uint64_t slot, uint32_t width, const void *in, const sw_along *to,
                     void *out)
{
    MPI_Datatype type = sw_elem_type(width);
    uint64_t n = to->n_outer * sw_own_rows(group, to->extent) * to->n_inner;
    char *received = stage_to_receive(group, slot * width);
    const void *sent = in;

    if (n < slot) { /* nothing of the caller is behind it */
        copy_rows(stage_to_send(group), 0, in, 0, n * width, 1);
        sent = stage_to_send(group);
    }
    MPI_Allgather(sent, (int)slot, type, received, (int)slot, type, group->mpi);
    unpack(group, to, width, received, slot * width, out);
}

void sw_slots_scatter(const sw_group *group, uint64_t slot, sw_dtype dtype, const sw_along *from,
                      const void *in, void *out)
{
    uint32_t width = sw_width_of(dtype);
    char *received = stage_to_receive(group, slot * width);
    uint64_t n = from->n_outer * sw_own_rows(group, from->extent) * from->n_inner;

    swap(group, slot, width, from, in, received);
    for (uint32_t m = 0; m < group->size; m++)
        group->work->parts[m] = received + m * slot * width;
    if (n > 0)
        sw_combine(out, group->work->parts, group->size, n, dtype, SW_COMBINE_SUM);
}
