/*
 * Apply: a plan made real. A net that knows nothing of ranks becomes one rank's part of a net that is spread
 * over the mesh: its parameters are cut, its modules get the numbers of what is here, and where the plan has
 * a boundary the module's forward is wrapped by what moves its inputs and outputs.
 *
 *     sw_net_create → sw_apply → (sw_bind_parallel_modules) → sw_net_allocate → sw_apply_load → run
 *
 * One logical loss: gradients that are R are the same on all ranks; those of parameters are summed over the
 * ranks that the plan names, and never divided.
 */
#ifndef SW_APPLY_APPLY_H
#define SW_APPLY_APPLY_H

#include "apply/source_shards.h"
#include "nn/net.h"
#include "plan/plan_data.h"
#include "shardwright/comm.h"

typedef struct sw_apply_options {
    bool validates; /* layouts stay on tensors: every operation checks its rule, every boundary its output */
} sw_apply_options;

/*
 * Apply `plan` to the parts of a model (pipeline stages; one is the usual), none of which has memory yet. The
 * plan and `comm` are borrowed until the nets are destroyed.
 *
 * *shards gets where every parameter comes from, for sw_source_shards_destroy(); NULL in validate mode, and
 * where nothing is cut over a mesh. Everything is checked before anything is changed: a failed apply leaves
 * the nets as they were. SW_E_PLAN: a plan for another mesh or model, something that the net cannot do;
 * SW_E_ARGUMENT: applied already; SW_E_NO_MEMORY.
 *
 * Collective over `comm`: all ranks succeed or fail together.
 */
sw_status sw_apply(sw_net *const *parts, uint32_t n_parts, const sw_plan *plan, sw_comm *comm,
                   const sw_apply_options *options, sw_source_shards **shards, sw_error *err);

#endif
