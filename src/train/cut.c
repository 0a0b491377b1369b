/* Rows cut over cp (train/cut.h). */
#include "train/cut.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "comm/comm.h"

sw_status sw_cutter_create(sw_cutter *out, const sw_ranks *ranks, sw_sequence_order order, uint64_t n_rows,
                           uint64_t n_tokens, sw_error *err)
{
    sw_cutter c = {.order = order, .n_parts = 1};
    sw_sequence sequence;

    if (ranks->comm != NULL) {
        c.n_parts = ranks->context->size;
        c.part = ranks->context->index;
    }
    *out = c;
    if (c.n_parts == 1)
        return SW_OK;
    SW_TRY(sw_sequence_make(&sequence, n_tokens, c.n_parts, order, err));
    uint64_t n = n_rows * sw_sequence_local(&sequence);
    c.ids = sw_alloc_zero(n, sizeof *c.ids);
    c.targets = sw_alloc_zero(n, sizeof *c.targets);
    c.positions = sw_alloc_zero(n, sizeof *c.positions);
    *out = c;
    if (c.ids != NULL && c.targets != NULL && c.positions != NULL)
        return SW_OK;
    sw_cutter_clear(out);
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu64 " tokens", n);
}

void sw_cutter_clear(sw_cutter *cutter)
{
    sw_free(cutter->ids);
    sw_free(cutter->targets);
    sw_free(cutter->positions);
    *cutter = (sw_cutter){0};
}

sw_feed sw_cutter_cut(sw_cutter *cutter, const sw_feed *whole)
{
    const sw_batch batch = {.n_rows = whole->n_rows, .ids = whole->ids, .targets = whole->targets};
    const sw_batch_part part = {cutter->ids, cutter->targets, cutter->positions};
    sw_sequence sequence;

    if (cutter->ids == NULL)
        return *whole;
    /* no longer than the rows that there is room for, so it does not fail */
    SW_IGNORE(sw_sequence_make(&sequence, whole->n_tokens, cutter->n_parts, cutter->order, NULL));
    sw_sequence_cut(&sequence, cutter->part, &batch, &part);
    return (sw_feed){.n_rows = whole->n_rows,
                     .n_tokens = sw_sequence_local(&sequence),
                     .n_whole = whole->n_tokens,
                     .ids = cutter->ids,
                     .targets = cutter->targets,
                     .positions = cutter->positions};
}
