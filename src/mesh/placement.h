/*
 * Text of placements, both ways. Two grammars, normative in docs/formats/plan.md and
 * docs/formats/overrides.md:
 *
 *   plan file    R | P | S(dim) | S(dim;CUT)          white space nowhere, numbers without leading zeros
 *     CUT        rep=N | rep=N;unit=M | unit=M        one segment, the whole dim
 *                seg=LIST | gN=LIST                   segments of the dim | of each of N >= 2 equal groups
 *     LIST       EXTENT[rN][uM] joined by +           N replicas >= 2, units of M >= 2 rows
 *   override     replicate | partial | shard(N)       letter case and white space do not matter;
 *                                                     the plan file's forms are taken too
 *
 * Invariant: each placement has one text, and what the plan-file parser takes is printed again byte for byte.
 */
#ifndef SW_MESH_PLACEMENT_H
#define SW_MESH_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "shardwright/mesh.h"

#define SW_PLACEMENT_TEXT_LIMIT 65536U /* bytes of one placement's text */

/*
 * Read the plan file's form; the cut is taken from `arena`. Only the form is checked: whether the cut fits a
 * tensor is sw_cut_check(). SW_E_FORMAT, SW_E_LIMIT, SW_E_NO_MEMORY.
 */
sw_status sw_placement_parse(sw_placement *out, const char *text, size_t length, sw_arena *arena,
                             sw_error *err);

/* Read the form of an override file; the same otherwise. */
sw_status sw_placement_parse_word(sw_placement *out, const char *text, size_t length, sw_arena *arena,
                                  sw_error *err);

/* The dim of a shard on a tensor of `n_dims`, negative ones counted from the last; false when it has none. */
bool sw_placement_dim(const sw_placement *placement, uint32_t n_dims, uint32_t *dim);

#endif
