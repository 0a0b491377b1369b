/* What the forms of context-parallel attention (parallel/attention.h) ask of their arguments, and give. */
#ifndef SW_PARALLEL_ATTENTION_SHAPE_H
#define SW_PARALLEL_ATTENTION_SHAPE_H

#include "parallel/node.h"
#include "tensor/operations.h"

/*
 * Do shapes and types fit each other? false when they do not, or the step has failed before: then it has
 * failed now. To be asked before the first message.
 */
bool sw_attention_fits(sw_step *step, const char *form, const sw_tensor *const *qkv,
                       const sw_attend_args *args);

/* The same arguments without layouts; false when the step has failed. */
bool sw_attention_local(sw_step *step, const sw_tensor **qkv, sw_attend_args *args);

/* Give the result of a local region the layout of q; returns it, or NULL when the step has failed. */
sw_tensor *sw_attention_result(sw_step *step, const sw_tensor *q, sw_tensor *out);

#endif
