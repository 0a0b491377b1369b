/*
 * The cursor of a plan (checkpoint/copy_cursor.h): an odometer over stretches and rows, the last dim fastest.
 * For every dim it knows how far into each source the dims outside have led, so a step costs a few additions.
 */
#include "checkpoint/copy_cursor.h"

#include "base/status.h"

#define NOT_HELD UINT64_MAX

static uint64_t *reached_at(const sw_copy_cursor *cursor, uint32_t dim)
{
    return &cursor->reached[(size_t)dim * cursor->plan->n_sources];
}

/* What the current stretch and row of a dim lead to, for the dim inside it. */
static void enter(const sw_copy_cursor *cursor, uint32_t dim)
{
    const sw_copy_dim *of = &cursor->plan->dims[dim];
    const sw_copy_stretch *stretch = &of->stretches[cursor->stretch[dim]];
    const uint64_t *outside = reached_at(cursor, dim);
    uint64_t *inside = reached_at(cursor, dim + 1);

    for (uint32_t s = 0; s < cursor->plan->n_sources; s++)
        inside[s] = NOT_HELD;
    for (uint32_t h = 0; h < stretch->n_holders; h++) {
        const sw_copy_holder *holder = &of->holders[stretch->first_holder + h];
        if (outside[holder->source] != NOT_HELD) {
            inside[holder->source] =
                outside[holder->source] + holder->at + cursor->row[dim] * of->row_bytes[holder->source];
        }
    }
}

sw_status sw_copy_cursor_init(sw_copy_cursor *cursor, const sw_copy_plan *plan, sw_arena *arena,
                              sw_error *err)
{
    *cursor = (sw_copy_cursor){.plan = plan, .is_at_end = plan->n_dims == 0};
    if (cursor->is_at_end)
        return SW_OK;
    cursor->reached = sw_arena_zero(arena, plan->n_sources, plan->n_dims * sizeof *cursor->reached);
    if (cursor->reached == NULL)
        return sw_arena_fail(arena, "a plan of copying", err);
    for (uint32_t s = 0; s < plan->n_sources; s++)
        cursor->reached[s] = plan->sources[s].begin;
    for (uint32_t d = 0; d + 1 < plan->n_dims; d++)
        enter(cursor, d);
    return SW_OK;
}

/* Move on by one stretch of the last dim. */
static void advance(sw_copy_cursor *cursor)
{
    const sw_copy_plan *plan = cursor->plan;
    uint32_t d = plan->n_dims - 1;

    if (++cursor->stretch[d] < plan->dims[d].n_stretches)
        return;
    cursor->stretch[d] = 0;
    while (d-- > 0) {
        if (++cursor->row[d] < plan->dims[d].stretches[cursor->stretch[d]].n_rows)
            break;
        cursor->row[d] = 0;
        if (++cursor->stretch[d] < plan->dims[d].n_stretches)
            break;
        cursor->stretch[d] = 0;
    }
    if (d == UINT32_MAX) {
        cursor->is_at_end = true;
        return;
    }
    for (; d + 1 < plan->n_dims; d++)
        enter(cursor, d);
}

/* One stretch of the last dim from its first holder that the rows outside have too. */
static sw_status step(sw_copy_cursor *cursor, sw_copy_span *out, sw_error *err)
{
    const sw_copy_plan *plan = cursor->plan;
    uint32_t last = plan->n_dims - 1;
    const sw_copy_stretch *stretch = &plan->dims[last].stretches[cursor->stretch[last]];
    const uint64_t *reached = reached_at(cursor, last);

    *out = (sw_copy_span){0};
    if (cursor->is_at_end)
        return SW_OK;
    for (uint32_t h = 0; h < stretch->n_holders; h++) {
        const sw_copy_holder *holder = &plan->dims[last].holders[stretch->first_holder + h];
        if (reached[holder->source] == NOT_HELD)
            continue;
        *out = (sw_copy_span){holder->source, reached[holder->source] + holder->at, stretch->n_rows};
        advance(cursor);
        return SW_OK;
    }
    return SW_FAIL(err, SW_E_FORMAT, "run 'shardwright verify' on it",
                   "tensor '%.150s': no file holds some of what is wanted of it", plan->tensor->name);
}

sw_status sw_copy_cursor_next(sw_copy_cursor *cursor, sw_copy_span *out, sw_error *err)
{
    sw_copy_span span = cursor->ahead;

    cursor->ahead = (sw_copy_span){0};
    if (cursor->plan->n_dims != 0 && span.n_bytes == 0)
        SW_TRY(step(cursor, &span, err));
    while (span.n_bytes != 0 && !cursor->is_at_end) {
        sw_copy_span more;
        SW_TRY(step(cursor, &more, err));
        if (more.source != span.source || more.at != span.at + span.n_bytes) {
            cursor->ahead = more;
            break;
        }
        span.n_bytes += more.n_bytes;
    }
    *out = span;
    return SW_OK;
}
