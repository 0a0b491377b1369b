/*
 * A cursor goes through a plan of copying in the order of the part's bytes and says, span after span, where
 * in which file the next bytes stand. Neighbouring spans that are neighbours in the file too come as one.
 */
#ifndef SW_CHECKPOINT_COPY_CURSOR_H
#define SW_CHECKPOINT_COPY_CURSOR_H

#include "checkpoint/copy_plan.h"

typedef struct sw_copy_span {
    uint32_t source; /* of the plan */
    uint64_t at;     /* from the start of the file */
    uint64_t n_bytes;
} sw_copy_span;

typedef struct sw_copy_cursor {
    const sw_copy_plan *plan;
    uint32_t stretch[SW_MAX_DIMS]; /* where we are along each dim */
    uint64_t row[SW_MAX_DIMS];     /* inside the stretch; 0 in the last dim */
    uint64_t *reached;  /* by dim and source: byte of the file the dims outside have led to, or NOT_HELD */
    sw_copy_span ahead; /* read already, because it did not continue the last one */
    bool is_at_end;
} sw_copy_cursor;

sw_status sw_copy_cursor_init(sw_copy_cursor *cursor, const sw_copy_plan *plan, sw_arena *arena,
                              sw_error *err);

/* The next span; n_bytes is 0 at the end. SW_E_FORMAT: no file holds what comes next. */
sw_status sw_copy_cursor_next(sw_copy_cursor *cursor, sw_copy_span *out, sw_error *err);

#endif
