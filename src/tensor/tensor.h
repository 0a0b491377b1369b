/*
 * Tensors: an element type, up to five dims with strides, and a stretch of a storage. Several tensors may be
 * views of one storage. The gradient belongs to the storage: the gradient of a view is the same view of it,
 * so that views take no part in the backward.
 *
 * A tensor is a plain struct in somebody's memory (the step's, or a stack); it owns nothing. Strides count
 * elements; dims of one row may have any stride.
 */
#ifndef SW_TENSOR_TENSOR_H
#define SW_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/layout.h"
#include "shardwright/error.h"
#include "shardwright/model.h"
#include "tensor/stack.h"

enum { SW_TENSOR_MAX_DIMS = SW_LAYOUT_MAX_DIMS };

typedef struct sw_storage {
    void *data;
    uint64_t n_elems;
    sw_dtype dtype;
    bool needs_gradient; /* a parameter, or made from one */
    bool is_lent;        /* `gradient` is the owner's: a parameter's, not of this step */
    bool has_gradient;   /* something has flowed back; until then `gradient` holds nothing */
    void *gradient;      /* elements of sw_gradient_dtype(dtype); NULL: none yet */
} sw_storage;

typedef struct sw_tensor {
    sw_storage *storage;
    uint64_t offset; /* elements from the begin of the storage */
    uint32_t n_dims;
    uint64_t dims[SW_TENSOR_MAX_DIMS];
    uint64_t strides[SW_TENSOR_MAX_DIMS];
    const sw_tensor_layout *layout; /* borrowed; NULL in production, and inside local regions */
} sw_tensor;

/* F64 of F64, F32 of everything else: parameters in a short float have gradients in F32. */
sw_dtype sw_gradient_dtype(sw_dtype dtype);

size_t sw_elem_bytes(sw_dtype dtype); /* 0 for types of less than a byte, and unknown ones */

/* Elements of a shape. SW_E_LIMIT: more than five dims, or more bytes of `dtype` than there are addresses. */
sw_status sw_shape_elems(uint64_t *out, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims, sw_error *err);

/*
 * A tensor whose elements stand in `data`, row-major; tensor and storage are made on `stack`, the data are
 * borrowed. `data` NULL: they are taken from the stack too, not initialised.
 */
sw_status sw_tensor_create(sw_tensor **out, sw_stack *stack, sw_dtype dtype, uint32_t n_dims,
                           const uint64_t *dims, void *data, sw_error *err);

/*
 * Make a parameter of it: gradients are added to `gradient`, or written to it while the storage's
 * has_gradient is false, which its owner sets back when a new sum begins.
 */
void sw_tensor_lend_gradient(sw_tensor *tensor, void *gradient);

uint64_t sw_tensor_elems(const sw_tensor *tensor);
void *sw_tensor_data(const sw_tensor *tensor); /* of the first element */
sw_dtype sw_tensor_dtype(const sw_tensor *tensor);

bool sw_tensor_is_dense(const sw_tensor *tensor); /* row-major without gaps */

/*
 * As rows: the last `inner` dims are dense and make a row, all dims before them follow one another with one
 * stride. false when they do not.
 */
typedef struct sw_tensor_rows {
    size_t n_rows;
    size_t width;
    size_t stride;
} sw_tensor_rows;

bool sw_tensor_as_rows(const sw_tensor *tensor, uint32_t inner, sw_tensor_rows *out);

/* Views, in place: SW_E_ARGUMENT with the numbers for what there is not. */
sw_status sw_tensor_cut(sw_tensor *tensor, uint32_t dim, uint64_t begin, uint64_t length, sw_error *err);
sw_status sw_tensor_swap(sw_tensor *tensor, uint32_t a, uint32_t b, sw_error *err);
/* Dim `dim` as two: rows / inner, inner. */
sw_status sw_tensor_split(sw_tensor *tensor, uint32_t dim, uint64_t inner, sw_error *err);
/* The same said the other way round: outer, rows / outer; of no rows too. */
sw_status sw_tensor_split_into(sw_tensor *tensor, uint32_t dim, uint64_t outer, sw_error *err);
/* Dims `dim` and the next as one. *is_view false: the elements would have to move; the tensor is left alone.
 */
sw_status sw_tensor_merge(sw_tensor *tensor, uint32_t dim, bool *is_view, sw_error *err);

/* "[2, 3, 5]" */
enum { SW_SHAPE_TEXT = 112 };
void sw_shape_text(uint32_t n_dims, const uint64_t *dims, char text[SW_SHAPE_TEXT]);

#endif
