/*
 * Views: a tensor or a part of one where it lies in memory, with any strides. Collectives pack parts into
 * rows of bytes and put rows back; both walk a view in row-major order and can begin anywhere in it, so that
 * a large part goes in pieces.
 */
#ifndef SW_COMM_VIEW_H
#define SW_COMM_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/mesh.h"

enum { SW_VIEW_MAX_DIMS = 6 };

typedef struct sw_view {
    char *data;
    uint32_t width; /* bytes of an element: 1, 2, 4 or 8 */
    uint32_t n_dims;
    uint64_t dims[SW_VIEW_MAX_DIMS];
    int64_t strides[SW_VIEW_MAX_DIMS]; /* in elements */
} sw_view;

/* A dense tensor. */
sw_view sw_view_dense(const void *data, uint32_t width, uint32_t n_dims, const uint64_t *dims);

/* Rows of one dim of a view. */
sw_view sw_view_rows(const sw_view *view, uint32_t dim, sw_range rows);

uint64_t sw_view_elems(const sw_view *view);

/* Dims of extent 1 left out, neighbours that lie one behind the other joined: the same walk, fewer dims. */
sw_view sw_view_joined(const sw_view *view);

/* Is a joined view one stretch of memory? */
bool sw_view_is_dense(const sw_view *joined);

/* Copy the elements from `first` on, `n` of them, of a joined view to a row of bytes, or back. */
void sw_view_pack(void *row, const sw_view *joined, uint64_t first, uint64_t n);
void sw_view_unpack(const sw_view *joined, uint64_t first, uint64_t n, const void *row);

/* Copy a view to another of the same extents. */
void sw_view_copy(const sw_view *to, const sw_view *from);

#endif
