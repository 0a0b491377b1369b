/*
 * Where a tensor lies on a mesh, as far as operations need to know: the axes, what each does to the tensor,
 * and its whole shape. Only validate mode looks at it. Transitions between places are made in src/dtensor.
 */
#ifndef SW_TENSOR_PLACES_H
#define SW_TENSOR_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "shardwright/mesh.h"

enum { SW_PLACES_MAX_AXES = 3, SW_TENSOR_MAX_DIMS = 5, SW_PLACES_TEXT = 160 };

typedef struct sw_places {
    uint32_t n_axes; /* outermost first */
    sw_axis axis[SW_PLACES_MAX_AXES];
    uint32_t size[SW_PLACES_MAX_AXES];
    sw_placement on[SW_PLACES_MAX_AXES]; /* dims are not negative; cuts are borrowed */
    uint32_t n_dims;
    uint64_t dims[SW_TENSOR_MAX_DIMS]; /* of the whole tensor */
} sw_places;

bool sw_places_same_axes(const sw_places *a, const sw_places *b);

/* "cp=R tp=S(1)" */
void sw_places_text(const sw_places *places, char text[SW_PLACES_TEXT]);

/* A dim of a tensor, each row of which stands for `rows` of what two tensors are compared by. */
typedef struct sw_places_dim {
    const sw_places *places;
    uint32_t dim;
    uint64_t rows;
} sw_places_dim;

/* Does every rank hold the same part of both dims? They are over the same axes. */
bool sw_places_agree(const sw_places_dim *a, const sw_places_dim *b);

/* The same, or one row of `b` and, of what that stands for, a part of `a`. */
bool sw_places_serves(const sw_places_dim *a, const sw_places_dim *b);

#endif
