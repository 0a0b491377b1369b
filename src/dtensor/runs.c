/* Walking boxes (dtensor/runs.h): an odometer over the ranges of each dim. */
#include "dtensor/runs.h"

#include <string.h>

static bool is_whole(const sw_rows *rows, uint64_t extent)
{
    return rows->count == extent;
}

void sw_runs_begin(sw_runs *runs, const sw_box *box, const uint64_t *dims, uint32_t n_dims)
{
    uint64_t stride = 1;

    *runs = (sw_runs){.box = box, .is_done = box->elems == 0};
    for (uint32_t d = n_dims; d-- > 0;) {
        runs->stride[d] = stride;
        stride *= dims[d];
        if (runs->last == 0 && !is_whole(&box->along[d], dims[d]))
            runs->last = d;
    }
    for (uint32_t d = 0; d < runs->last && !runs->is_done; d++)
        runs->row[d] = box->along[d].ranges[0].begin;
}

/* To the next row of dim `d`; false when it was the last, and the dim is back at its first. */
static bool turn(sw_runs *runs, uint32_t d)
{
    const sw_rows *rows = &runs->box->along[d];

    if (d < runs->last && ++runs->row[d] < rows->ranges[runs->range[d]].end)
        return true;
    bool has_more = ++runs->range[d] < rows->n;
    if (!has_more)
        runs->range[d] = 0;
    runs->row[d] = rows->n == 0 ? 0 : rows->ranges[runs->range[d]].begin;
    return has_more;
}

bool sw_runs_next(sw_runs *runs, sw_run *out)
{
    const sw_rows *rows = &runs->box->along[runs->last];
    uint32_t d = runs->last + 1;

    if (runs->is_done)
        return false;
    if (runs->stride[0] == 0) { /* a scalar */
        *out = (sw_run){0, 1};
        runs->is_done = true;
        return true;
    }
    const sw_range *range = &rows->ranges[runs->range[runs->last]];
    *out = (sw_run){range->begin * runs->stride[runs->last],
                    (range->end - range->begin) * runs->stride[runs->last]};
    for (uint32_t outer = 0; outer < runs->last; outer++)
        out->begin += runs->row[outer] * runs->stride[outer];
    while (d-- > 0) {
        if (turn(runs, d))
            return true;
    }
    runs->is_done = true;
    return true;
}

size_t sw_box_pack(void *packed, const void *tensor, sw_runs *runs, size_t width)
{
    size_t at = 0;
    sw_run run;

    while (sw_runs_next(runs, &run)) {
        memcpy((char *)packed + at, (const char *)tensor + run.begin * width, run.length * width);
        at += run.length * width;
    }
    return at;
}

size_t sw_box_unpack(void *tensor, const void *packed, sw_runs *runs, size_t width)
{
    size_t at = 0;
    sw_run run;

    while (sw_runs_next(runs, &run)) {
        memcpy((char *)tensor + run.begin * width, (const char *)packed + at, run.length * width);
        at += run.length * width;
    }
    return at;
}

void sw_box_copy(void *to, sw_runs *to_runs, const void *from, sw_runs *from_runs, size_t width)
{
    sw_run target = {0, 0};
    sw_run source = {0, 0};

    for (;;) {
        if (target.length == 0 && !sw_runs_next(to_runs, &target))
            return;
        if (source.length == 0 && !sw_runs_next(from_runs, &source))
            return;
        uint64_t n = target.length < source.length ? target.length : source.length;
        memcpy((char *)to + target.begin * width, (const char *)from + source.begin * width, n * width);
        target = (sw_run){target.begin + n, target.length - n};
        source = (sw_run){source.begin + n, source.length - n};
    }
}
