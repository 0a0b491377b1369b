/* Writing a plan file; the format is docs/formats/plan.md. */
#ifndef SW_PLAN_PLAN_WRITE_H
#define SW_PLAN_PLAN_WRITE_H

#include "io/json_write.h"
#include "plan/plan_data.h"

enum { SW_PLAN_VERSION = 1 };

/* Append the plan's JSON, one object and a final newline. SW_E_NO_MEMORY. */
sw_status sw_plan_write(const sw_plan *plan, sw_buffer *out, sw_error *err);

/* The same text to a sink, in pieces. Fails as the sink does, too. */
sw_status sw_plan_write_to(const sw_plan *plan, const sw_sink *sink, sw_error *err);

/*
 * The boundaries that `is_shown` marks, in the plan file's own form: {"boundaries": {...}}. `shown` has for
 * each of them a byte a parameter, NULL for all of its parameters. SW_E_NO_MEMORY.
 */
sw_status sw_plan_write_part(const sw_plan *plan, const bool *is_shown, const uint8_t *const *shown,
                             sw_buffer *out, sw_error *err);

/* What writer and reader agree on: stored dims of the mathematics that need not be written, and rows with a
 * dim. */
void sw_plan_usual_dims(uint32_t n_dims, int *out_dim, int *in_dim);
bool sw_plan_row_has_dim(sw_collective collective);

/* A placement as a string; where memory ends the writer's buffer has failed. */
void sw_placement_put(sw_json_writer *w, const sw_placement *placement);

#endif
