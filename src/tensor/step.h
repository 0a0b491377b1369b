/*
 * A step: the memory of its tensors, the tape of its operations, and its first failure. Operations
 * (tensor/operations.h) take a step and give a tensor, or NULL once something has failed: then all that
 * follow do nothing, and sw_step_status() tells what failed first. So a module reads like its formula.
 *
 * What a step took is kept for the next one: the second step of the same shapes allocates nothing.
 *
 * In validate mode tensors carry layouts (mesh/layout.h) and every operation checks its rule. An operation
 * none of whose inputs has a layout is local and not checked. In production layouts are never looked at.
 */
#ifndef SW_TENSOR_STEP_H
#define SW_TENSOR_STEP_H

#include "kernel/kernel.h"
#include "tensor/tensor.h"

typedef struct sw_step sw_step;

/* The kernel is borrowed. */
sw_status sw_step_create(sw_step **out, sw_kernel *kernel, sw_error *err);
void sw_step_destroy(sw_step *step); /* NULL is fine */

/* Forget all tensors, the tape and the failure. Operations are recorded from here on if `records`. */
void sw_step_begin(sw_step *step, bool records);
bool sw_step_records(const sw_step *step);
void sw_step_validate(sw_step *step, bool validates); /* off at first */

sw_status sw_step_status(const sw_step *step, sw_error *err);
/* Note a failure, unless there is one; `err` was filled by whoever failed. Returns the status. */
sw_status sw_step_fail(sw_step *step, sw_status status, const sw_error *err);

/* Put "where: " in front of what the failure says, if there is one. */
void sw_step_fail_in(sw_step *step, const char *where);

/*
 * A watch on the insides of operations, forward and backward, which is where kernels and collectives run. Of
 * operations inside others the outermost counts. For benchmarks; borrowed. NULL, as at first: nobody looks.
 */
typedef struct sw_watch {
    double (*now)(void);
    double seconds; /* so far */
    double begun;
    uint32_t depth;
} sw_watch;

void sw_step_watch(sw_step *step, sw_watch *watch);
/* Around what is watched. */
void sw_watch_begin(sw_watch *watch);
void sw_watch_end(sw_watch *watch);

sw_stack *sw_step_stack(sw_step *step);
sw_kernel *sw_step_kernel(const sw_step *step);

/*
 * Products of few rows between these two are run together at the end of them, where they have one x: until
 * then nobody may look at what they give. For projections of one input, of which each begins and ends
 * threads.
 */
void sw_step_gather_products(sw_step *step);
void sw_step_run_gathered(sw_step *step);

/*
 * Tensors of the step: with elements not initialised, or borrowed ones. Those without gradient may be given
 * back by a mark of the step's stack, as long as nothing that was recorded lies above it.
 */
sw_tensor *sw_step_tensor(sw_step *step, sw_dtype dtype, uint32_t n_dims, const uint64_t *dims);

/*
 * Walk the tape back from `y`, whose gradient is `d_y` (dense, in its type; NULL: ones), and forget it.
 * Gradients of parameters are where they were lent.
 */
sw_status sw_step_backward(sw_step *step, const sw_tensor *y, const void *d_y, sw_error *err);

/*
 * An operation from outside: collectives. The output has a storage of its own, though its elements may be an
 * input's (sw_tensor_create with its data), and in validate mode the layout that it says. The backward writes
 * d_in[i] where it is not NULL, all of it; gradients are dense.
 */
typedef struct sw_custom_back {
    const sw_tensor *const *in;
    const sw_tensor *out;
    const void *d_out;
    void *const *d_in;
} sw_custom_back;

typedef struct sw_custom {
    const char *name;
    sw_status (*forward)(void *context, sw_step *step, const sw_tensor *const *in, sw_tensor **out,
                         sw_error *err);
    sw_status (*backward)(void *context, sw_step *step, const sw_custom_back *back, sw_error *err);
} sw_custom;

/* `custom` and `context` are borrowed until the step ends. At most 8 inputs. */
sw_tensor *sw_step_custom(sw_step *step, const sw_custom *custom, void *context, const sw_tensor *const *in,
                          uint32_t n_inputs);

/*
 * What `run` computes from tensors, without keeping what it needs for the backward: there it runs once more.
 * It must do the same both times; parameters may be used without being among the inputs.
 */
typedef sw_tensor *sw_recompute_fn(void *context, sw_step *step, const sw_tensor *const *in);

sw_tensor *sw_step_recompute(sw_step *step, sw_recompute_fn *run, void *context, const sw_tensor *const *in,
                             uint32_t n_inputs);

#endif
