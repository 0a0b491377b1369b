/*
 * Gradients of parameters after the backward: summed over the ranks that hold summands, as the plan's
 * grad_sum says, and the square of their norm, in which each element of the model counts once.
 *
 * Gradients that are summed over the same groups go together, in buckets: one message a bucket and group.
 * Those that lie one behind the other in memory are summed there, others by way of a stage. A gradient that
 * is larger than a bucket goes alone, in place.
 */
#ifndef SW_PARALLEL_GRADIENTS_H
#define SW_PARALLEL_GRADIENTS_H

#include "comm/comm.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

enum { SW_GRADIENT_SUMS = 4 };

/* All of it is borrowed. */
typedef struct sw_gradient {
    sw_storage *storage; /* of the parameter: whether a gradient has flowed, and its type */
    void *values;        /* the gradient: all of the storage's, or a stretch */
    uint64_t n_elems;
    uint32_t n_sums;
    const sw_group *sums[SW_GRADIENT_SUMS]; /* summed over one after the other */
    uint32_t n_owned;
    const sw_range *owned; /* what this rank counts of it (parallel/owned.h), none where others count it */
} sw_gradient;

typedef struct sw_gradients sw_gradients;

/*
 * For these gradients, whose list is copied; `all` are the ranks that hold parts or copies of the same
 * parameters, listed by all of them alike. Local. SW_E_NO_MEMORY, SW_E_LIMIT.
 */
sw_status sw_gradients_create(sw_gradients **out, const sw_gradient *list, uint32_t n, const sw_group *all,
                              size_t bucket_bytes, sw_error *err);
void sw_gradients_destroy(sw_gradients *gradients); /* NULL is fine */

uint32_t sw_gradients_buckets(const sw_gradients *gradients); /* messages, if each has one group */

/* ---- hot: collective over `all`, nothing is allocated ---- */

/*
 * Sum. A gradient that no rank has stays none; where others have one, a rank without brings zeros. Nothing is
 * divided.
 */
void sw_gradients_sum(sw_gradients *gradients);

/*
 * The sum of the squares of all elements, after they were summed: the same bits on all ranks, in double. NaN
 * on one rank is NaN on all.
 */
double sw_gradients_square_sum(const sw_gradients *gradients, const sw_kernel *kernel);

#endif
