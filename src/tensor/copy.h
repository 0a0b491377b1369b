/* Elements of views: copied to a dense array, and added back from one. */
#ifndef SW_TENSOR_COPY_H
#define SW_TENSOR_COPY_H

#include "tensor/tensor.h"

void sw_copy_to_dense(const sw_tensor *from, void *to);

/* Add dense `values` (of sw_gradient_dtype) to the view's part of the gradient of its storage. */
void sw_add_to_gradient(const sw_tensor *view, const void *values);

#endif
