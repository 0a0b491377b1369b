/*
 * The runs of a box: stretches of a dense tensor, in elements, that follow one another in memory. Dims behind
 * the last that is cut are one stretch with it. Walking the runs in order is walking the box in row-major
 * order.
 */
#ifndef SW_DTENSOR_RUNS_H
#define SW_DTENSOR_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "dtensor/exchange.h"

typedef struct sw_run {
    uint64_t begin;
    uint64_t length;
} sw_run;

typedef struct sw_runs {
    const sw_box *box;
    uint32_t last;                       /* dim whose ranges are the runs */
    uint64_t stride[SW_LAYOUT_MAX_DIMS]; /* elements of a row */
    uint32_t range[SW_LAYOUT_MAX_DIMS];  /* where the walk is: range of each dim, */
    uint64_t row[SW_LAYOUT_MAX_DIMS];    /* row of each dim before the last */
    bool is_done;
} sw_runs;

/* Begin at the first run of a box of a tensor with these extents. The box is borrowed. */
void sw_runs_begin(sw_runs *runs, const sw_box *box, const uint64_t *dims, uint32_t n_dims);

/* The next run; false behind the last. */
bool sw_runs_next(sw_runs *runs, sw_run *out);

/* Copy a box out of a tensor to a dense buffer, and back. Returns the bytes. `width`: bytes of an element. */
size_t sw_box_pack(void *packed, const void *tensor, sw_runs *runs, size_t width);
size_t sw_box_unpack(void *tensor, const void *packed, sw_runs *runs, size_t width);

/* Copy a box of one tensor to a box of another, of as many elements. */
void sw_box_copy(void *to, sw_runs *to_runs, const void *from, sw_runs *from_runs, size_t width);

#endif
