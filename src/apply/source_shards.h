/*
 * Source shards: for each parameter of a plan, where its elements lie before any sharding of optimizer state:
 * one placement for each axis of its source mesh that data parallelism does not own (tp for dense parameters,
 * ep for routed experts under TP-extend-EP). Whoever shards further needs to know.
 */
#ifndef SW_APPLY_SOURCE_SHARDS_H
#define SW_APPLY_SOURCE_SHARDS_H

#include "base/arena.h"
#include "mesh/layout.h"
#include "plan/plan_data.h"

typedef struct sw_source_shard {
    const char *fqn;
    sw_grid grid; /* source axes that have more than one rank */
    sw_placement on[SW_GRID_MAX_AXES];
} sw_source_shard;

typedef struct sw_source_shards {
    sw_arena *arena;
    uint32_t n;
    sw_source_shard *shards; /* in the order of the plan; cuts are the plan's */
} sw_source_shards;

struct sw_active;

/* Of all parameters of the plan; *out NULL when no axis is a source. SW_E_PLAN, SW_E_NO_MEMORY. */
sw_status sw_source_shards_make(sw_source_shards **out, const sw_plan *plan, const struct sw_active *active,
                                sw_error *err);
void sw_source_shards_destroy(sw_source_shards *shards); /* NULL is fine */

/* NULL when there is none. */
const sw_source_shard *sw_source_shards_find(const sw_source_shards *shards, const char *fqn);

#endif
