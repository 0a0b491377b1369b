/* One dim of a plan of copying: the wanted ranges cut wherever a source begins or ends. */
#ifndef SW_CHECKPOINT_COPY_STRETCH_H
#define SW_CHECKPOINT_COPY_STRETCH_H

#include "checkpoint/copy_plan.h"

/*
 * Fill the stretches and holders of a dim whose row_bytes are there. `sources` are the ranges of each source
 * along it, `target` those that are wanted. The cost is that of sorting the ends of all ranges.
 */
sw_status sw_copy_stretches(sw_copy_dim *dim, const sw_pieces *sources, uint32_t n_sources,
                            const sw_pieces *target, sw_arena *arena, sw_error *err);

#endif
