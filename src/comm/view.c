/*
 * Views (comm/view.h). Packing, unpacking and copying are one walk through two views: the last dim of a
 * joined view is a run of elements at one distance, the dims before it are counted like an odometer. Runs are
 * often short, as many bytes as a row of a cut matrix has: all that follow at one distance are copied in one
 * go.
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

/* ---- rows: runs of bytes at one distance ---- */

/* Rows of memory, `step` bytes from one to the next. */
typedef struct rows {
    char *at;
    int64_t step;
    uint64_t n;
} rows;

/* `unit` is a number that the compiler knows: what it copies is no call. */
static inline __attribute__((always_inline)) void copy_rows_by(rows to, rows from, uint64_t n, size_t length,
                                                               size_t unit)
{
    for (uint64_t r = 0; r < n; r++) {
        char *target = to.at + (int64_t)r * to.step;
        const char *source = from.at + (int64_t)r * from.step;
        for (size_t i = 0; i < length; i += unit)
            memcpy(target + i, source + i, unit);
    }
}

/* Of rows as long as this a call of memcpy() is the lesser part. */
enum { LONG_ROW = 1024 };

static void copy_rows(rows to, rows from, uint64_t n, size_t length)
{
    if (length % 64 == 0 && length <= LONG_ROW)
        copy_rows_by(to, from, n, length, 64);
    else if (length % 16 == 0 && length <= LONG_ROW)
        copy_rows_by(to, from, n, length, 16);
    else if (length % 8 == 0 && length <= 64)
        copy_rows_by(to, from, n, length, 8);
    else if (length % 4 == 0 && length <= 32)
        copy_rows_by(to, from, n, length, 4);
    else
        copy_rows_by(to, from, n, length, length);
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

/* Is the place the beginning of a run of `length` elements, with other runs behind it? */
static bool begins_run(const place *p, uint64_t length)
{
    uint32_t last = p->view->n_dims - 1;
    return last > 0 && p->at[last] == 0 && p->view->dims[last] == length;
}

/* How many rows of `length` elements follow from a place on: whole runs, or parts of one. None where elements
 * are apart. */
static rows rows_at(const place *p, uint64_t length)
{
    const sw_view *view = p->view;
    uint32_t last = view->n_dims - 1;
    rows found = {p->data, (int64_t)(length * view->width), run_left(p) / length};

    if (begins_run(p, length)) {
        found.n = view->dims[last - 1] - p->at[last - 1];
        found.step = view->strides[last - 1] * (int64_t)view->width;
    }
    if (view->strides[last] != 1)
        found.n = 0;
    return found;
}

/* Move on by `n` rows of `length` elements, which do not pass the end of the run, or of the dim before it. */
static void move(place *p, uint64_t n, uint64_t length)
{
    const sw_view *view = p->view;
    bool is_by_run = begins_run(p, length);
    uint32_t d = view->n_dims - (is_by_run ? 2 : 1);
    uint64_t steps = is_by_run ? n : n * length;

    p->at[d] += steps;
    p->data += (int64_t)steps * view->strides[d] * (int64_t)view->width;
    while (d > 0 && p->at[d] == view->dims[d]) {
        p->data -= (int64_t)view->dims[d] * view->strides[d] * (int64_t)view->width;
        p->at[d--] = 0;
        p->at[d]++;
        p->data += view->strides[d] * (int64_t)view->width;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void copy(place to, place from, uint64_t n)
{
    uint32_t width = to.view->width;

    while (n > 0) {
        uint64_t length = least(n, least(run_left(&to), run_left(&from)));
        if (length == 0)
            return; /* cannot be: a view with elements has runs */
        rows into = rows_at(&to, length);
        rows out_of = rows_at(&from, length);
        uint64_t n_rows = least(n / length, least(into.n, out_of.n));
        if (n_rows > 1) {
            copy_rows(into, out_of, n_rows, length * width);
        } else {
            n_rows = 1;
            copy_run(run_at(&to), run_at(&from), length, width);
        }
        move(&to, n_rows, length);
        move(&from, n_rows, length);
        n -= n_rows * length;
    }
}

void sw_view_pack(void *row, const sw_view *joined, uint64_t first, uint64_t n)
{
    const sw_view dense = sw_view_dense(row, joined->width, 1, &n);
    copy(place_of(&dense, 0), place_of(joined, first), n);
}

void sw_view_unpack(const sw_view *joined, uint64_t first, uint64_t n, const void *row)
{
    const sw_view dense = sw_view_dense(row, joined->width, 1, &n);
    copy(place_of(joined, first), place_of(&dense, 0), n);
}

void sw_view_copy(const sw_view *to, const sw_view *from)
{
    const sw_view target = sw_view_joined(to);
    const sw_view source = sw_view_joined(from);

    copy(place_of(&target, 0), place_of(&source, 0), sw_view_elems(from));
}
