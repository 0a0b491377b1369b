/* Tensors and views (tensor/tensor.h). */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"

sw_dtype sw_gradient_dtype(sw_dtype dtype)
{
    return dtype == SW_DTYPE_F64 ? SW_DTYPE_F64 : SW_DTYPE_F32;
}

size_t sw_elem_bytes(sw_dtype dtype)
{
    return sw_dtype_bits(dtype) / 8;
}

void sw_shape_text(uint32_t n_dims, const uint64_t *dims, char text[SW_SHAPE_TEXT])
{
    size_t at = 0;

    (void)snprintf(text, SW_SHAPE_TEXT, "[");
    for (uint32_t i = 0; i < n_dims && i < SW_TENSOR_MAX_DIMS; i++) {
        at = strlen(text);
        (void)snprintf(text + at, SW_SHAPE_TEXT - at, "%s%" PRIu64, i == 0 ? "" : ", ", dims[i]);
    }
    at = strlen(text);
    (void)snprintf(text + at, SW_SHAPE_TEXT - at, "]");
}

sw_status sw_shape_elems(uint64_t *out, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims, sw_error *err)
{
    uint64_t n_elems = 1;
    uint64_t n_bytes = 0;
    bool is_empty = false;

    if (n_dims > SW_TENSOR_MAX_DIMS) {
        return SW_FAIL(err, SW_E_LIMIT, "put dims together", "%" PRIu32 " dims, a tensor has at most %d",
                       n_dims, (int)SW_TENSOR_MAX_DIMS);
    }
    if (sw_elem_bytes(dtype) == 0) {
        const char *name = sw_dtype_name(dtype);
        return SW_FAIL(err, SW_E_ARGUMENT, "use a type of whole bytes", "there are no tensors of type %s",
                       name == NULL ? "?" : name);
    }
    for (uint32_t i = 0; i < n_dims; i++)
        is_empty |= dims[i] == 0;
    for (uint32_t i = 0; i < n_dims && !is_empty; i++) {
        if (!sw_mul_u64(n_elems, dims[i], &n_elems))
            n_elems = UINT64_MAX;
    }
    if (!sw_mul_u64(n_elems, sw_elem_bytes(dtype), &n_bytes) || n_bytes > PTRDIFF_MAX) {
        char shape[SW_SHAPE_TEXT];
        sw_shape_text(n_dims, dims, shape);
        return SW_FAIL(err, SW_E_LIMIT, "check the sizes",
                       "a tensor %s has more bytes than there are addresses", shape);
    }
    *out = is_empty ? 0 : n_elems;
    return SW_OK;
}

static void set_dense(sw_tensor *tensor, uint32_t n_dims, const uint64_t *dims)
{
    uint64_t stride = 1;

    tensor->n_dims = n_dims;
    for (uint32_t i = n_dims; i-- > 0;) {
        tensor->dims[i] = dims[i];
        tensor->strides[i] = stride;
        stride *= dims[i] == 0 ? 1 : dims[i];
    }
}

sw_status sw_tensor_create(sw_tensor **out, sw_stack *stack, sw_dtype dtype, uint32_t n_dims,
                           const uint64_t *dims, void *data, sw_error *err)
{
    typedef struct made {
        sw_tensor tensor;
        sw_storage storage;
    } made;
    uint64_t n_elems = 0;

    SW_TRY(sw_shape_elems(&n_elems, dtype, n_dims, dims, err));
    made *fresh = sw_stack_take(stack, sizeof *fresh);
    if (fresh != NULL && data == NULL)
        data = sw_stack_take(stack, (size_t)n_elems * sw_elem_bytes(dtype));
    if (fresh == NULL || data == NULL) {
        char shape[SW_SHAPE_TEXT];
        sw_shape_text(n_dims, dims, shape);
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a tensor %s", shape);
    }
    *fresh = (made){
        .storage = {.data = data, .n_elems = n_elems, .dtype = dtype}
    };
    fresh->tensor.storage = &fresh->storage;
    set_dense(&fresh->tensor, n_dims, dims);
    *out = &fresh->tensor;
    return SW_OK;
}

void sw_tensor_lend_gradient(sw_tensor *tensor, void *gradient)
{
    tensor->storage->needs_gradient = true;
    tensor->storage->is_lent = true;
    tensor->storage->has_gradient = false;
    tensor->storage->gradient = gradient;
}

uint64_t sw_tensor_elems(const sw_tensor *tensor)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < tensor->n_dims; i++)
        n *= tensor->dims[i];
    return n;
}

void *sw_tensor_data(const sw_tensor *tensor)
{
    const sw_storage *storage = tensor->storage;
    return (char *)storage->data + tensor->offset * sw_elem_bytes(storage->dtype);
}

sw_dtype sw_tensor_dtype(const sw_tensor *tensor)
{
    return tensor->storage->dtype;
}

/* Do dims first .. last-1 follow one another, the last of them with `stride`? */
static bool follow(const sw_tensor *t, uint32_t first, uint32_t last, uint64_t stride)
{
    for (uint32_t i = last; i-- > first;) {
        if (t->dims[i] != 1 && t->strides[i] != stride)
            return false;
        stride *= t->dims[i];
    }
    return true;
}

bool sw_tensor_is_dense(const sw_tensor *tensor)
{
    return sw_tensor_elems(tensor) == 0 || follow(tensor, 0, tensor->n_dims, 1);
}

bool sw_tensor_as_rows(const sw_tensor *tensor, uint32_t inner, sw_tensor_rows *out)
{
    uint32_t outer = tensor->n_dims - inner;
    uint64_t n_rows = 1;
    uint64_t width = 1;
    uint32_t innermost = outer; /* of the dims of rows, that has more than one */

    for (uint32_t i = outer; i < tensor->n_dims; i++)
        width *= tensor->dims[i];
    for (uint32_t i = 0; i < outer; i++)
        n_rows *= tensor->dims[i];
    while (innermost > 0 && tensor->dims[innermost - 1] == 1)
        innermost--;
    uint64_t stride = innermost > 0 ? tensor->strides[innermost - 1] : width;
    bool is_empty = n_rows == 0 || width == 0;
    if (!is_empty && (!follow(tensor, outer, tensor->n_dims, 1) || !follow(tensor, 0, innermost, stride) ||
                      stride < width))
        return false;
    *out = (sw_tensor_rows){(size_t)n_rows, (size_t)width, (size_t)(is_empty ? width : stride)};
    return true;
}

static sw_status has_dim(const sw_tensor *tensor, uint32_t dim, sw_error *err)
{
    if (dim < tensor->n_dims)
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "dims count from 0",
                   "there is no dim %" PRIu32 " in a tensor of %" PRIu32, dim, tensor->n_dims);
}

sw_status sw_tensor_cut(sw_tensor *tensor, uint32_t dim, uint64_t begin, uint64_t length, sw_error *err)
{
    SW_TRY(has_dim(tensor, dim, err));
    if (begin > tensor->dims[dim] || length > tensor->dims[dim] - begin) {
        return SW_FAIL(err, SW_E_ARGUMENT, "check where it begins and how long it is",
                       "rows %" PRIu64 " to %" PRIu64 " of dim %" PRIu32 ", which has %" PRIu64, begin,
                       begin + length, dim, tensor->dims[dim]);
    }
    tensor->offset += length == 0 ? 0 : begin * tensor->strides[dim];
    tensor->dims[dim] = length;
    return SW_OK;
}

sw_status sw_tensor_swap(sw_tensor *tensor, uint32_t a, uint32_t b, sw_error *err)
{
    SW_TRY(has_dim(tensor, a, err));
    SW_TRY(has_dim(tensor, b, err));
    uint64_t rows = tensor->dims[a];
    uint64_t stride = tensor->strides[a];
    tensor->dims[a] = tensor->dims[b];
    tensor->strides[a] = tensor->strides[b];
    tensor->dims[b] = rows;
    tensor->strides[b] = stride;
    return SW_OK;
}

/* Room for one dim more or less behind `dim`. */
static void move_dims(sw_tensor *tensor, uint32_t to, uint32_t from)
{
    uint32_t n = tensor->n_dims - from;

    memmove(tensor->dims + to, tensor->dims + from, n * sizeof *tensor->dims);
    memmove(tensor->strides + to, tensor->strides + from, n * sizeof *tensor->strides);
    tensor->n_dims = to + n;
}

static sw_status check_split(const sw_tensor *tensor, uint32_t dim, uint64_t size, sw_error *err)
{
    SW_TRY(has_dim(tensor, dim, err));
    if (tensor->n_dims == SW_TENSOR_MAX_DIMS) {
        return SW_FAIL(err, SW_E_LIMIT, "put dims together",
                       "a tensor of %" PRIu32 " dims cannot get one more", tensor->n_dims);
    }
    if (size == 0 || tensor->dims[dim] % size != 0) {
        return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes",
                       "dim %" PRIu32 " of %" PRIu64 " rows is no whole number of %" PRIu64, dim,
                       tensor->dims[dim], size);
    }
    return SW_OK;
}

static void split(sw_tensor *tensor, uint32_t dim, uint64_t outer, uint64_t inner)
{
    move_dims(tensor, dim + 1, dim);
    tensor->dims[dim] = outer;
    tensor->strides[dim] *= inner;
    tensor->dims[dim + 1] = inner;
}

sw_status sw_tensor_split(sw_tensor *tensor, uint32_t dim, uint64_t inner, sw_error *err)
{
    SW_TRY(check_split(tensor, dim, inner, err));
    split(tensor, dim, tensor->dims[dim] / inner, inner);
    return SW_OK;
}

sw_status sw_tensor_split_into(sw_tensor *tensor, uint32_t dim, uint64_t outer, sw_error *err)
{
    SW_TRY(check_split(tensor, dim, outer, err));
    split(tensor, dim, outer, tensor->dims[dim] / outer);
    return SW_OK;
}

sw_status sw_tensor_merge(sw_tensor *tensor, uint32_t dim, bool *is_view, sw_error *err)
{
    SW_TRY(has_dim(tensor, dim, err));
    SW_TRY(has_dim(tensor, dim + 1, err)); /* does not wrap: there is a dim `dim` */
    const uint64_t *dims = tensor->dims + dim;
    const uint64_t *strides = tensor->strides + dim;
    *is_view =
        sw_tensor_elems(tensor) == 0 || dims[0] == 1 || dims[1] == 1 || strides[0] == strides[1] * dims[1];
    if (!*is_view)
        return SW_OK;
    uint64_t rows = dims[0] * dims[1];
    uint64_t stride = dims[1] == 1 ? strides[0] : strides[1];
    move_dims(tensor, dim, dim + 1);
    tensor->dims[dim] = rows;
    tensor->strides[dim] = stride;
    return SW_OK;
}
