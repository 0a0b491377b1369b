/* The order of sequences (train/batches.h): Fisher and Yates with counter-based random numbers. */
#include "train/batches.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/random.h"

sw_status sw_batches_create(sw_batches *out, const sw_tokens *tokens, uint32_t length, uint64_t seed,
                            const char *path, sw_error *err)
{
    uint64_t n_windows = (tokens->n_tokens - 1) / length;

    if (n_windows == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give a longer file or a smaller --seq-len",
                       "%s: %" PRIu64 " tokens, a sequence of %" PRIu32 " needs %" PRIu64, path,
                       tokens->n_tokens, length, (uint64_t)length + 1);
    if (n_windows >= UINT32_MAX)
        return SW_FAIL(err, SW_E_LIMIT, "give a larger --seq-len", "%s: %" PRIu64 " sequences of %" PRIu32,
                       path, n_windows, length);
    uint32_t *order = sw_alloc_zero(n_windows, sizeof *order);
    if (order == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for the order of %" PRIu64 " sequences", path,
                       n_windows);
    *out = (sw_batches){tokens, seed, length, (uint32_t)n_windows, order, UINT64_MAX};
    return SW_OK;
}

void sw_batches_clear(sw_batches *batches)
{
    sw_free(batches->order);
    *batches = (sw_batches){0};
}

/* Bits as a number below n: each of them as likely as any other to one part in 2^32 / n. */
static uint32_t below(uint64_t bits, uint32_t n)
{
    return (uint32_t)((uint64_t)(bits >> 32) * n >> 32);
}

static void shuffle(sw_batches *batches, uint64_t epoch)
{
    static const char name[] = "train.order";
    sw_random random = sw_random_of(batches->seed, name, sizeof name - 1);
    uint32_t n = batches->n_windows;
    uint64_t bits[SW_RANDOM_BATCH];

    for (uint32_t i = 0; i < n; i++)
        batches->order[i] = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        if (i % SW_RANDOM_BATCH == 0)
            sw_random_bits(&random, epoch * n + i, SW_RANDOM_BATCH, bits);
        uint32_t other = i + below(bits[i % SW_RANDOM_BATCH], n - i);
        uint32_t taken = batches->order[other];
        batches->order[other] = batches->order[i];
        batches->order[i] = taken;
    }
    batches->epoch = epoch;
}

uint32_t sw_batches_window(sw_batches *batches, uint64_t number)
{
    uint64_t epoch = number / batches->n_windows;

    if (epoch != batches->epoch)
        shuffle(batches, epoch);
    return batches->order[number % batches->n_windows];
}

void sw_batches_fill(sw_batches *batches, uint64_t number, uint32_t n, int32_t *ids, int32_t *targets)
{
    uint64_t length = batches->length;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = sw_batches_window(batches, number + i) * length;
        sw_tokens_read(batches->tokens, first, length, ids + i * length);
        sw_tokens_read(batches->tokens, first + 1, length, targets + i * length);
    }
}
