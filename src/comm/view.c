/*
 * Views (comm/view.h). Packing, unpacking and copying are one walk: the last dim of the joined view is a run
 * of elements at one distance, the dims before it are counted like an odometer.
 */
#include "comm/view.h"

#include <string.h>

sw_view sw_view_dense(const void *data, uint32_t width, uint32_t n_dims, const uint64_t *dims)
{
    sw_view view = {.data = (char *)data, .width = width, .n_dims = n_dims};
    uint64_t stride = 1;

    for (uint32_t d = n_dims; d-- > 0;) {
        view.dims[d] = dims[d];
        view.strides[d] = (int64_t)stride;
        stride *= dims[d];
    }
    return view;
}

sw_view sw_view_rows(const sw_view *view, uint32_t dim, sw_range rows)
{
    sw_view part = *view;

    part.data += (int64_t)rows.begin * view->strides[dim] * (int64_t)view->width;
    part.dims[dim] = rows.end - rows.begin;
    return part;
}

uint64_t sw_view_elems(const sw_view *view)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < view->n_dims; d++)
        n *= view->dims[d];
    return n;
}

sw_view sw_view_joined(const sw_view *view)
{
    sw_view joined = {.data = view->data, .width = view->width};
    uint32_t n = 0;

    if (sw_view_elems(view) == 0) {
        joined.n_dims = 1;
        joined.strides[0] = 1;
        return joined;
    }
    for (uint32_t d = 0; d < view->n_dims; d++) {
        uint64_t extent = view->dims[d];
        int64_t stride = view->strides[d];
        if (extent == 1)
            continue;
        if (n > 0 && joined.strides[n - 1] == stride * (int64_t)extent) {
            joined.dims[n - 1] *= extent;
            joined.strides[n - 1] = stride;
        } else {
            joined.dims[n] = extent;
            joined.strides[n++] = stride;
        }
    }
    if (n == 0) { /* one element */
        joined.dims[0] = 1;
        joined.strides[0] = 1;
        n = 1;
    }
    joined.n_dims = n;
    return joined;
}

bool sw_view_is_dense(const sw_view *joined)
{
    return joined->n_dims == 1 && joined->strides[0] == 1;
}

/* ---- runs: elements at one distance ---- */

/* A run of elements in memory, `step` bytes from one to the next. */
typedef struct run {
    char *at;
    int64_t step;
} run;

#define COPY_RUN(type)                                                                                       \
    do {                                                                                                     \
        for (uint64_t i = 0; i < n; i++) {                                                                   \
            type value_;                                                                                     \
            memcpy(&value_, from.at + (int64_t)i * from.step, sizeof value_);                                \
            memcpy(to.at + (int64_t)i * to.step, &value_, sizeof value_);                                    \
        }                                                                                                    \
    } while (0)

static void copy_run(run to, run from, uint64_t n, uint32_t width)
{
    if (to.step == (int64_t)width && from.step == (int64_t)width) {
        memcpy(to.at, from.at, n * width);
        return;
    }
    switch (width) {
    case 1:
        COPY_RUN(uint8_t);
        break;
    case 2:
        COPY_RUN(uint16_t);
        break;
    case 4:
        COPY_RUN(uint32_t);
        break;
    default:
        COPY_RUN(uint64_t);
        break;
    }
}

/* ---- the walk ---- */

/* A place in a joined view: the index of each dim, and where that is. */
typedef struct place {
    const sw_view *view;
    uint64_t at[SW_VIEW_MAX_DIMS];
    char *data;
} place;

static place place_of(const sw_view *view, uint64_t element)
{
    place p = {.view = view, .data = view->data};

    for (uint32_t d = view->n_dims; d-- > 0;) {
        p.at[d] = d == 0 ? element : element % view->dims[d];
        element /= view->dims[d] == 0 ? 1 : view->dims[d];
        p.data += (int64_t)p.at[d] * view->strides[d] * (int64_t)view->width;
    }
    return p;
}

/* Elements up to the end of the run at a place. */
static uint64_t run_left(const place *p)
{
    uint32_t last = p->view->n_dims - 1;
    return p->view->dims[last] - p->at[last];
}

static run run_at(const place *p)
{
    return (run){p->data, p->view->strides[p->view->n_dims - 1] * (int64_t)p->view->width};
}

/* Move on by `n` elements, which do not pass the end of the run. */
static void move(place *p, uint64_t n)
{
    const sw_view *view = p->view;
    uint32_t d = view->n_dims - 1;

    p->at[d] += n;
    p->data += (int64_t)n * view->strides[d] * (int64_t)view->width;
    while (d > 0 && p->at[d] == view->dims[d]) {
        p->data -= (int64_t)view->dims[d] * view->strides[d] * (int64_t)view->width;
        p->at[d--] = 0;
        p->at[d]++;
        p->data += view->strides[d] * (int64_t)view->width;
    }
}

void sw_view_pack(void *row, const sw_view *joined, uint64_t first, uint64_t n)
{
    place from = place_of(joined, first);
    char *to = row;

    while (n > 0) {
        uint64_t length = run_left(&from) < n ? run_left(&from) : n;
        copy_run((run){to, joined->width}, run_at(&from), length, joined->width);
        move(&from, length);
        to += length * joined->width;
        n -= length;
    }
}

void sw_view_unpack(const sw_view *joined, uint64_t first, uint64_t n, const void *row)
{
    place to = place_of(joined, first);
    char *from = (char *)row; /* only read */

    while (n > 0) {
        uint64_t length = run_left(&to) < n ? run_left(&to) : n;
        copy_run(run_at(&to), (run){from, joined->width}, length, joined->width);
        move(&to, length);
        from += length * joined->width;
        n -= length;
    }
}

void sw_view_copy(const sw_view *to, const sw_view *from)
{
    const sw_view target = sw_view_joined(to);
    const sw_view source = sw_view_joined(from);
    place into = place_of(&target, 0);
    place out_of = place_of(&source, 0);

    for (uint64_t n = sw_view_elems(from); n > 0;) {
        uint64_t length = run_left(&into) < run_left(&out_of) ? run_left(&into) : run_left(&out_of);
        copy_run(run_at(&into), run_at(&out_of), length, target.width);
        move(&into, length);
        move(&out_of, length);
        n -= length;
    }
}
