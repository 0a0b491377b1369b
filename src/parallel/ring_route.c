/* Routes of blocks round the ring (parallel/ring_route.h). */
#include "parallel/ring_route.h"

sw_ring_tokens sw_ring_no_tokens(void)
{
    sw_ring_tokens none;

    for (int i = 0; i < SW_RING_HALVES; i++) {
        none.queries[i] = sw_no_positions;
        none.keys[i] = sw_no_positions;
    }
    return none;
}

void sw_ring_tokens_add(sw_ring_tokens *tokens, const int32_t *q_positions, const int32_t *k_positions,
                        uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        int half = i < n / 2 ? 0 : 1;
        sw_position_widen(&tokens->queries[half], q_positions[i]);
        if (k_positions[i] >= 0)
            sw_position_widen(&tokens->keys[half], k_positions[i]);
    }
}

static bool is_empty(sw_position_range range)
{
    return range.least > range.most;
}

bool sw_ring_sees(const sw_ring_mask *mask, const sw_ring_tokens *queries, const sw_ring_tokens *keys)
{
    bool sees = false;

    for (int i = 0; i < SW_RING_HALVES * SW_RING_HALVES; i++) {
        sw_position_range q = queries->queries[i / SW_RING_HALVES];
        sw_position_range k = keys->keys[i % SW_RING_HALVES];
        if (!is_empty(q) && !is_empty(k))
            sees = sees || sw_sight_between(mask->is_causal, mask->window, q, k) != SW_SEES_NONE;
    }
    return sees;
}

uint32_t sw_ring_reach(const sw_ring_mask *mask, const sw_ring_tokens *tokens, uint32_t n, uint32_t *reach)
{
    uint32_t most = 0;

    for (uint32_t block = 0; block < n; block++) {
        uint32_t steps = n - 1;
        while (steps > 0 && !sw_ring_sees(mask, &tokens[(block + steps) % n], &tokens[block]))
            steps--;
        reach[block] = steps;
        most = steps > most ? steps : most;
    }
    return most;
}
