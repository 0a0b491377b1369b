/*
 * In which order tokens go to experts and stand there. Pure arithmetic, the same for any spread of experts:
 * rows of an expert are in the order of the ranks that they come from, and of one rank in the order of its
 * tokens, so that ranks with neighbouring tokens make the order of one rank that has them all.
 */
#ifndef SW_PARALLEL_EXPERT_ROUTE_H
#define SW_PARALLEL_EXPERT_ROUTE_H

#include <stdint.h>

#include "shardwright/mesh.h"

/* How many of the n choices are of each of some experts; counts[0] is of experts.begin. Returns their sum. */
uint64_t sw_choices_count(const int32_t *choices, uint64_t n, sw_range experts, uint64_t *counts);

/*
 * Those choices in the order of their experts: order[i] is where the i-th stands. `begins` has room for as
 * many as counts.
 */
void sw_choices_sort(const int32_t *choices, uint64_t n, sw_range experts, const uint64_t *counts,
                     uint64_t *begins, int32_t *order);

/*
 * Rows come from each rank by expert, counts[rank * n_experts + expert] of them, one rank behind the other,
 * and are wanted by expert: row i of the wanted order is row place[i] of those that came, and back[place[i]]
 * is i. `begins` has room for as many as counts; ends[e] is where the rows of expert e end.
 */
void sw_rows_by_expert(const uint64_t *counts, uint32_t n_ranks, uint64_t n_experts, uint64_t *begins,
                       int32_t *ends, int32_t *place, int32_t *back);

#endif
