/* What the forms of context-parallel attention (parallel/attention.h) ask of their arguments, and give. */
#ifndef SW_PARALLEL_ATTENTION_SHAPE_H
#define SW_PARALLEL_ATTENTION_SHAPE_H

#include "kernel/attention.h"
#include "parallel/node.h"
#include "tensor/operations.h"

/*
 * Do shapes and types fit each other? Keys are of the tokens of the queries, or (`is_apart`) of others. false
 * when they do not, or the step has failed before: then it has failed now. To be asked before the first
 * message.
 */
bool sw_attention_fits(sw_step *step, const char *form, const sw_tensor *const *qkv,
                       const sw_attend_args *args, bool is_apart);

/* The same arguments without layouts; false when the step has failed. */
bool sw_attention_local(sw_step *step, const sw_tensor **qkv, sw_attend_args *args);

/* Give the result of a local region the layout of q; returns it, or NULL when the step has failed. */
sw_tensor *sw_attention_result(sw_step *step, const sw_tensor *q, sw_tensor *out);

/* Heads [B, tokens, heads, width] without gaps. */
sw_heads_out sw_heads_dense(void *values, uint64_t n_tokens, uint64_t n_heads, uint64_t width);
sw_heads sw_heads_read(const void *values, uint64_t n_tokens, uint64_t n_heads, uint64_t width);

/* The kernel's arguments but for keys, values and what comes out. Copies of what has gaps are on the stack.
 */
sw_status sw_attention_frame(sw_step *step, const sw_tensor *const *qkv, const sw_attend_args *args,
                             sw_attention_args *out, sw_error *err);

#endif
