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

/* What a coordinate holds of a parameter, once it is worked out. */
typedef struct sw_slice_memo {
    bool is_made;
    sw_held held;
    sw_held expert[2]; /* of a stack: an expert that it owns, and one that it holds as a replica */
} sw_slice_memo;

/*
 * In the stored dims of the parameter; for a stack of experts with the expert dim in front. SW_E_PLAN,
 * without the parameter's name: a placement that no file of a sharded folder has (P, a cut over cp, two cuts
 * of one dim, an expert that is cut over tp too), or a cut that does not fit.
 */
sw_status sw_slice_make(sw_held *out, const sw_facts *facts, sw_slice_coord at, sw_arena *arena,
                        sw_error *err);

/* Expert `number` of the stack of a memo; NULL when the coordinate does not hold it. */
const sw_held *sw_slice_expert(sw_slice_memo *memo, uint64_t number);

#endif
