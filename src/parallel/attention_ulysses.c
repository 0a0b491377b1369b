/*
 * Context parallel by heads (parallel/attention.h): tokens of all ranks come for some of the heads, the
 * operation of one rank, and back. Where there are fewer key/value heads than ranks, or ranks do not divide
 * them, they are repeated in the exchange, as often as it takes and no more: then each rank's heads are
 * served by heads that it has.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "parallel/attention.h"
#include "parallel/attention_shape.h"
#include "parallel/collective_node.h"

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

sw_status sw_ulysses_check(uint64_t n_heads, uint32_t n_ranks, sw_error *err)
{
    char help[128] = "cp may be";
    size_t length = sizeof "cp may be" - 1;

    if (n_heads % n_ranks == 0)
        return SW_OK;
    for (uint64_t n = 1; n <= n_heads && length < sizeof help - 48; n++) {
        if (n_heads % n == 0)
            length += (size_t)snprintf(help + length, sizeof help - length, " %" PRIu64 ",", n);
    }
    (void)snprintf(help + length, sizeof help - length, " or any number with ring or gather");
    return SW_FAIL(err, SW_E_PLAN, help,
                   "Ulysses attention: cp=%" PRIu32 " does not divide the %" PRIu64
                   " query heads of a tp rank",
                   n_ranks, n_heads);
}

/* This rank's part of a vector over heads. */
static const sw_tensor *own_heads(sw_step *step, const sw_group *group, const sw_tensor *x)
{
    if (x == NULL)
        return NULL;
    uint64_t n = x->dims[0] / group->size;
    return sw_view_slice(step, x, 0, group->index * n, n);
}

static bool can_deal_out(sw_step *step, const sw_group *group, const sw_tensor *q)
{
    sw_error err = {0};
    sw_status status = sw_ulysses_check(q->dims[2], group->size, &err);

    if (status != SW_OK)
        SW_IGNORE(sw_step_fail(step, status, &err)); /* kept by the step */
    return status == SW_OK;
}

sw_tensor *sw_attention_ulysses(sw_step *step, const sw_group *group, const sw_tensor *q, const sw_tensor *k,
                                const sw_tensor *v, const sw_attend_args *args)
{
    const sw_tensor *qkv[] = {q, k, v};
    sw_attend_args all = *args;

    if (!sw_attention_fits(step, "Ulysses attention", qkv, args, false) || !can_deal_out(step, group, q) ||
        !sw_attention_local(step, qkv, &all))
        return NULL;
    uint32_t repeats = (uint32_t)(group->size / common_divisor(k->dims[2], group->size));
    const sw_tensor *queries = sw_heads_node(step, group, qkv[0], 1);
    const sw_tensor *keys = sw_heads_node(step, group, qkv[1], repeats);
    const sw_tensor *values = sw_heads_node(step, group, qkv[2], repeats);
    all.q_positions = sw_gather_node(step, group, all.q_positions, 1);
    all.k_positions = sw_gather_node(step, group, all.k_positions, 1);
    all.slopes = own_heads(step, group, all.slopes);
    all.sinks = own_heads(step, group, all.sinks);
    const sw_tensor *out = sw_op_attention(step, queries, keys, values, &all);
    if (out == NULL)
        return NULL;
    return sw_attention_result(step, q, sw_tokens_node(step, group, out));
}
