/*
 * What one model-parallel coordinate holds of a parameter, from its placements: the ranges of each dim, and
 * which of them it owns. All cuts come from mesh/shard.h.
 */
#ifndef SW_CHECKPOINT_SLICE_H
#define SW_CHECKPOINT_SLICE_H

#include "checkpoint/regions.h"
#include "plan/plan_data.h"

/* A file's place on the axes that tell files of its set apart; sizes are 1 on the others. */
typedef struct sw_slice_coord {
    uint32_t tp, n_tp;
    uint32_t ep, n_ep;
    bool has_tp, has_ep;
} sw_slice_coord;

typedef struct sw_slice_memo {
    bool is_made;
    sw_held held;
} sw_slice_memo;

/*
 * In the stored dims of the parameter; for a stack of experts with the expert dim in front. SW_E_PLAN,
 * without the parameter's name: a placement that no file of a sharded folder has (P, a cut over cp, two cuts
 * of one dim, an expert that is cut over tp too), or a cut that does not fit.
 */
sw_status sw_slice_make(sw_held *out, const sw_facts *facts, sw_slice_coord at, sw_arena *arena,
                        sw_error *err);

/* Expert `number` of a stack; false when the coordinate does not hold it. */
bool sw_slice_expert(sw_held *out, const sw_held *stack, uint64_t number);

#endif
