/* Sets of rows: each operation walks its two lists of ranges side by side, once. */
#include "dtensor/rows.h"

#include "base/status.h"

/* A set under construction, with room for all that may come. */
typedef struct builder {
    sw_range *ranges;
    uint32_t n;
    uint64_t count;
} builder;

static sw_status begin(builder *b, uint64_t capacity, sw_arena *arena, sw_error *err)
{
    *b = (builder){.ranges = sw_arena_zero(arena, capacity, sizeof(sw_range))};
    return b->ranges == NULL ? sw_arena_fail(arena, "the rows of a layout", err) : SW_OK;
}

static void append(builder *b, uint64_t begin, uint64_t end)
{
    if (begin >= end)
        return;
    b->count += end - begin;
    if (b->n > 0 && b->ranges[b->n - 1].end == begin)
        b->ranges[b->n - 1].end = end;
    else
        b->ranges[b->n++] = (sw_range){begin, end};
}

static sw_rows finished(const builder *b)
{
    return (sw_rows){b->count, b->n, b->ranges};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

sw_status sw_rows_whole(sw_rows *out, uint64_t extent, sw_arena *arena, sw_error *err)
{
    builder b;

    SW_TRY(begin(&b, 1, arena, err));
    append(&b, 0, extent);
    *out = finished(&b);
    return SW_OK;
}

sw_status sw_rows_pick(sw_rows *out, const sw_rows *of, const sw_rows *places, sw_arena *arena, sw_error *err)
{
    builder b;
    uint32_t i = 0;
    uint64_t at = 0; /* place of the first row of range `i` */

    SW_TRY(begin(&b, (uint64_t)of->n + places->n, arena, err));
    for (uint32_t k = 0; k < places->n && i < of->n;) {
        const sw_range *place = &places->ranges[k];
        uint64_t end = at + (of->ranges[i].end - of->ranges[i].begin);
        uint64_t from = most(place->begin, at);
        uint64_t to = least(place->end, end);
        if (from < to)
            append(&b, of->ranges[i].begin + (from - at), of->ranges[i].begin + (to - at));
        if (place->end <= end) {
            k++;
        } else {
            at = end;
            i++;
        }
    }
    *out = finished(&b);
    return SW_OK;
}

sw_status sw_rows_meet(sw_rows *out, const sw_rows *a, const sw_rows *b, sw_arena *arena, sw_error *err)
{
    builder both;

    SW_TRY(begin(&both, (uint64_t)a->n + b->n, arena, err));
    for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
        append(&both, most(a->ranges[i].begin, b->ranges[k].begin),
               least(a->ranges[i].end, b->ranges[k].end));
        if (a->ranges[i].end <= b->ranges[k].end)
            i++;
        else
            k++;
    }
    *out = finished(&both);
    return SW_OK;
}

sw_status sw_rows_places(sw_rows *out, const sw_rows *rows, const sw_rows *in, sw_arena *arena, sw_error *err)
{
    builder b;
    uint32_t i = 0;
    uint64_t at = 0;

    SW_TRY(begin(&b, (uint64_t)rows->n + in->n, arena, err));
    for (uint32_t k = 0; k < rows->n && i < in->n;) {
        const sw_range *within = &in->ranges[i];
        uint64_t from = most(rows->ranges[k].begin, within->begin);
        uint64_t to = least(rows->ranges[k].end, within->end);
        if (from < to)
            append(&b, at + (from - within->begin), at + (to - within->begin));
        if (rows->ranges[k].end <= within->end) {
            k++;
        } else {
            at += within->end - within->begin;
            i++;
        }
    }
    *out = finished(&b);
    return SW_OK;
}

bool sw_rows_equal(const sw_rows *a, const sw_rows *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->ranges[i].begin != b->ranges[i].begin || a->ranges[i].end != b->ranges[i].end)
            return false;
    }
    return true;
}
