/*
 * Ranks in one process: step lists of all ranks of a grid run in lockstep on arrays of doubles, each step by
 * plain loops over the elements of its result. What a step means is said here a second time, without the
 * executor and without a communicator.
 */
#ifndef SW_TEST_SIMULATE_H
#define SW_TEST_SIMULATE_H

#include <stdbool.h>

#include "dtensor/redistribution.h"

enum { SIMULATE_MAX_RANKS = 8 };

/*
 * One step: `in` and `out` have a tensor a rank, rank i at the i-th coordinate of the grid. False, with a
 * line on stderr, when the ranks' steps do not belong together.
 */
bool simulate_step(const sw_grid *grid, const sw_list_step *const *steps, double *const *in,
                   double *const *out);

/*
 * A whole list. Tensors are replaced by those of the last step; they come from malloc(), as those that are
 * given must.
 */
bool simulate_list(const sw_grid *grid, const sw_step_list *const *lists, double **tensors);

#endif
