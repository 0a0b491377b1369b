/* Which sides of a boundary's matrices tp cuts. */
#ifndef SW_PLAN_SIDES_H
#define SW_PLAN_SIDES_H

#include "plan/plan_data.h"

/* Bits: the output side (columns, in the field's word) and the input side (rows). */
enum { SW_CUTS_COLUMNS = 1, SW_CUTS_ROWS = 2 };

/* Of an attention or a feed-forward, whose matrices need both or neither; 0 for boundaries of other types. */
uint32_t sw_spec_sides(const sw_plan *plan, const sw_spec *spec);

#endif
