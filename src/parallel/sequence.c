/* Orders of a sequence over ranks (parallel/sequence.h). */
#include "parallel/sequence.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"

sw_sequence_order sw_sequence_order_of_name(const char *name)
{
    static const char *const names[SW_SEQUENCE_ORDER_COUNT_] = {"contiguous", "balanced"};
    unsigned order = 0;

    while (order < SW_SEQUENCE_ORDER_COUNT_ && strcmp(names[order], name) != 0)
        order++;
    return (sw_sequence_order)order;
}

sw_status sw_sequence_make(sw_sequence *out, uint64_t n_tokens, uint32_t parts, sw_sequence_order order,
                           sw_error *err)
{
    if (parts == 0 || (unsigned)order >= SW_SEQUENCE_ORDER_COUNT_) {
        return SW_FAIL(err, SW_E_ARGUMENT, "", "a sequence over %" PRIu32 " ranks in order %u", parts,
                       (unsigned)order);
    }
    if (n_tokens > INT32_MAX || parts > INT32_MAX) {
        return SW_FAIL(err, SW_E_LIMIT, "positions are 32 bits", "a sequence of %" PRIu64 " tokens",
                       n_tokens);
    }
    if (parts == 1)
        order = SW_SEQUENCE_CONTIGUOUS;
    uint64_t chunks = order == SW_SEQUENCE_BALANCED ? 2 * (uint64_t)parts : parts;
    uint64_t each = (n_tokens + chunks - 1) / chunks;
    *out = (sw_sequence){n_tokens, each * chunks, parts, order};
    return SW_OK;
}

uint64_t sw_sequence_local(const sw_sequence *sequence)
{
    return sequence->n_padded / sequence->parts;
}

uint64_t sw_sequence_token(const sw_sequence *sequence, uint32_t rank, uint64_t at)
{
    uint64_t local = sw_sequence_local(sequence);

    if (sequence->order == SW_SEQUENCE_CONTIGUOUS)
        return rank * local + at;
    uint64_t half = local / 2;
    uint64_t tail = 2 * (uint64_t)sequence->parts - 1 - rank;
    return at < half ? rank * half + at : tail * half + (at - half);
}

sw_sequence_place sw_sequence_place_of(const sw_sequence *sequence, uint64_t token)
{
    uint64_t local = sw_sequence_local(sequence);

    if (sequence->order == SW_SEQUENCE_CONTIGUOUS)
        return (sw_sequence_place){(uint32_t)(token / local), token % local};
    uint64_t half = local / 2;
    uint64_t chunk = token / half;
    if (chunk < sequence->parts)
        return (sw_sequence_place){(uint32_t)chunk, token % half};
    return (sw_sequence_place){(uint32_t)(2 * (uint64_t)sequence->parts - 1 - chunk), half + token % half};
}

static int32_t position_of(const sw_sequence *sequence, const sw_batch *batch, uint64_t row, uint64_t token)
{
    if (token >= sequence->n_tokens)
        return -1;
    return batch->positions == NULL ? (int32_t)token : batch->positions[row * sequence->n_tokens + token];
}

/* The label of the token behind: shifted here, before the cut, so that the last token of a rank has the label
 * of another rank's first. */
static int32_t target_of(const sw_sequence *sequence, const sw_batch *batch, uint64_t row, uint64_t token)
{
    const int32_t *labels = batch->labels == NULL ? batch->ids : batch->labels;

    if (position_of(sequence, batch, row, token) < 0)
        return -1;
    if (batch->targets != NULL)
        return batch->targets[row * sequence->n_tokens + token];
    if (position_of(sequence, batch, row, token + 1) < 0)
        return -1;
    return labels[row * sequence->n_tokens + token + 1];
}

void sw_sequence_cut(const sw_sequence *sequence, uint32_t rank, const sw_batch *batch,
                     const sw_batch_part *out)
{
    uint64_t local = sw_sequence_local(sequence);

    for (uint64_t row = 0; row < batch->n_rows; row++) {
        for (uint64_t i = 0; i < local; i++) {
            uint64_t token = sw_sequence_token(sequence, rank, i);
            bool is_here = token < sequence->n_tokens;
            out->ids[row * local + i] = is_here ? batch->ids[row * sequence->n_tokens + token] : 0;
            out->targets[row * local + i] = target_of(sequence, batch, row, token);
            out->positions[row * local + i] = position_of(sequence, batch, row, token);
        }
    }
}

void sw_sequence_restore(const sw_sequence *sequence, uint64_t n_outer, size_t n_bytes, const void *gathered,
                         void *out)
{
    uint64_t local = sw_sequence_local(sequence);

    for (uint64_t row = 0; row < n_outer; row++) {
        for (uint64_t token = 0; token < sequence->n_tokens; token++) {
            sw_sequence_place place = sw_sequence_place_of(sequence, token);
            uint64_t from = row * sequence->n_padded + place.rank * local + place.at;
            memcpy((char *)out + (row * sequence->n_tokens + token) * n_bytes,
                   (const char *)gathered + from * n_bytes, n_bytes);
        }
    }
}
