/* Building blocks of a plan: growing arena arrays, interned cuts, shapes and facts, specs by name. */
#ifndef SW_PLAN_INTERN_H
#define SW_PLAN_INTERN_H

#include "plan/plan_data.h"

/* Room for one more item: doubles into the arena, copies, never frees. false without memory. */
bool sw_plan_grow(sw_arena *arena, void **array, uint32_t *capacity, uint32_t count, size_t item_bytes);

/* The one copy of a cut; NULL without memory. */
const sw_cut *sw_plan_cut(sw_plan *plan, uint32_t n_groups, const sw_segment *segments, uint32_t n_segments);

/* Does the product of the extents fit 64 bits? */
bool sw_dims_fit(const uint64_t *dims, uint32_t n_dims);

/* The one copy of a shape; NULL without memory, or when the product of the extents overflows. */
const sw_shape *sw_plan_shape(sw_plan *plan, const uint64_t *dims, uint32_t n_dims);

/* The index of facts; UINT32_MAX without memory. Padding of `facts` must be zero: fill a zeroed record. */
uint32_t sw_plan_intern_facts(sw_plan *plan, const sw_facts *facts);

/* Append a parameter to a spec; strings are borrowed for the plan's life. */
sw_status sw_spec_add_param(sw_plan *plan, sw_spec *spec, sw_spec_param param, sw_error *err);

/* The spec at `fqn`, made when it is new; `fqn` is copied. Pointers to specs move when one is made. */
sw_status sw_plan_spec_at(sw_plan *plan, const char *fqn, uint32_t fqn_length, sw_spec **out, bool *is_new,
                          sw_error *err);

sw_spec *sw_plan_find_spec(const sw_plan *plan, const char *fqn, size_t length);

/* The boundary of the module that owns a tensor of this full name ("lm_head" of "lm_head.weight"), or NULL.
 */
sw_spec *sw_plan_find_user(const sw_plan *plan, const char *name);

/* Append a name with all-digit segments replaced by '#'. */
void sw_plan_put_pattern(sw_buffer *out, const char *name, size_t length);

#endif
