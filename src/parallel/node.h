/*
 * What the custom nodes of this folder share: memory of the step for them, and tensors as kernels and
 * collectives want them. Tensors of their inside carry no layout: a node is a local region, which says where
 * its output lies.
 */
#ifndef SW_PARALLEL_NODE_H
#define SW_PARALLEL_NODE_H

#include "comm/collective.h"
#include "tensor/step.h"

/* Memory of the step's stack. */
sw_status sw_node_take(sw_step *step, size_t bytes, void **out, sw_error *err);

/* The same for the context of a node that is about to be made; NULL when the step has failed. */
void *sw_node_context(sw_step *step, size_t bytes);

/* Row-major elements of a tensor: where they stand, or a copy on the stack. */
sw_status sw_node_dense(sw_step *step, const sw_tensor *x, const void **out, sw_error *err);

/* A tensor on the stack of these dims, without layout. */
sw_status sw_node_tensor(sw_step *step, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims,
                         sw_tensor **out, sw_error *err);

/* The same elements without a layout; NULL of NULL, and when the step has failed. */
const sw_tensor *sw_node_local(sw_step *step, const sw_tensor *x);

/* The layout of a tensor of the same ranks with another last dim; NULL of NULL. */
sw_status sw_node_layout(sw_step *step, const sw_tensor_layout *like, uint64_t last,
                         const sw_tensor_layout **out, sw_error *err);

/* SW_E_ARGUMENT with the name: elements are not F32 or F64, or not those of `like` (unless NULL). */
sw_status sw_node_check_real(const char *name, const sw_tensor *x, const sw_tensor *like, sw_error *err);

#endif
