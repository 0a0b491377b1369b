/*
 * What a rank counts of a tensor so that all ranks together count each element once: of copies the lowest
 * rank's. Summands count as copies: they are added up before anybody counts. Pure arithmetic on layouts.
 */
#ifndef SW_PARALLEL_OWNED_H
#define SW_PARALLEL_OWNED_H

#include "base/arena.h"
#include "mesh/layout.h"

/* Stretches of elements of the local tensor at a coordinate, ascending; as many as there are runs of rows. */
sw_status sw_owned_elements(const sw_tensor_layout *layout, sw_grid_coord at, sw_arena *arena,
                            const sw_range **out, uint32_t *n, sw_error *err);

#endif
