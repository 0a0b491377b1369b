/* When a cut that is said for a parameter contradicts what is known of its storage and use. */
#ifndef SW_PLAN_CUT_CONFLICT_H
#define SW_PLAN_CUT_CONFLICT_H

#include "plan/plan_data.h"

/*
 * Does `said` cut the parameter over `axis` (SW_ON_TP or SW_ON_EP) where `derived` knows better: one that is
 * whole on purpose, another dim, or other rows of a tensor whose layout is known? A cut that does not fit the
 * tensor is no conflict: the lints name it.
 */
bool sw_cut_conflicts(const sw_plan *plan, const sw_facts *derived, const sw_places *said, int axis);

/* Do two shards of a dim of `extent` give every rank the same rows? true too when one of them does not fit.
 */
bool sw_same_rows(const sw_placement *a, const sw_placement *b, uint64_t extent, uint32_t ranks);

#endif
