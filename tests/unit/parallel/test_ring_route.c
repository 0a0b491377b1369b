/* Routes round the ring: no rank misses a block that it sees, and what nobody sees stays at home. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

#include "gen.h"
#include "parallel/ring_route.h"
#include "parallel/sequence.h"

enum { MOST_RANKS = 8, MOST_TOKENS = 12 };

typedef struct ring {
    uint32_t n;
    uint32_t local;
    int32_t positions[MOST_RANKS][MOST_TOKENS];
    sw_ring_tokens tokens[MOST_RANKS];
    uint32_t reach[MOST_RANKS];
    uint32_t most;
} ring;

static void route(ring *r, const sw_ring_mask *mask)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->tokens[i] = sw_ring_no_tokens();
        sw_ring_tokens_add(&r->tokens[i], r->positions[i], r->positions[i], r->local);
    }
    r->most = sw_ring_reach(mask, r->tokens, r->n, r->reach);
}

static ring ring_of(uint64_t tokens, uint32_t n, sw_sequence_order order, const sw_ring_mask *mask)
{
    sw_sequence s;
    ring r = {.n = n};

    assert_int_equal(sw_sequence_make(&s, tokens, n, order, NULL), SW_OK);
    r.local = (uint32_t)sw_sequence_local(&s);
    for (uint32_t rank = 0; rank < n; rank++) {
        for (uint32_t i = 0; i < r.local; i++) {
            uint64_t token = sw_sequence_token(&s, rank, i);
            r.positions[rank][i] = token < tokens ? (int32_t)token : -1;
        }
    }
    route(&r, mask);
    return r;
}

static void a_causal_block_goes_to_the_last_rank_and_no_further(void **state)
{
    const sw_ring_mask mask = {true, 0};
    ring r = ring_of(16, 4, SW_SEQUENCE_CONTIGUOUS, &mask);

    (void)state;
    for (uint32_t block = 0; block < 4; block++)
        assert_int_equal(r.reach[block], 3 - block);
    assert_int_equal(r.most, 3);
    assert_true(sw_ring_sees(&mask, &r.tokens[2], &r.tokens[1]));
    assert_false(sw_ring_sees(&mask, &r.tokens[1], &r.tokens[2]));
}

static void a_window_keeps_blocks_near_home(void **state)
{
    const sw_ring_mask mask = {true, 4};
    ring r = ring_of(32, 8, SW_SEQUENCE_CONTIGUOUS, &mask);

    (void)state;
    for (uint32_t block = 0; block < 8; block++)
        assert_int_equal(r.reach[block], block < 7 ? 1 : 0);
    assert_int_equal(r.most, 1);
}

/* Chunks 0..7 over 4 ranks. Rank 3 has the middle, 3 and 4; its window reaches chunks 2 and 3. */
static void in_balanced_order_windows_are_seen_by_halves(void **state)
{
    const sw_ring_mask mask = {true, 2};
    ring r = ring_of(16, 4, SW_SEQUENCE_BALANCED, &mask);

    (void)state;
    assert_false(sw_ring_sees(&mask, &r.tokens[3], &r.tokens[0]));
    assert_true(sw_ring_sees(&mask, &r.tokens[3], &r.tokens[2]));
    assert_true(sw_ring_sees(&mask, &r.tokens[0], &r.tokens[1])); /* chunk 7 the end of 6 */
    assert_false(sw_ring_sees(&mask, &r.tokens[0], &r.tokens[2]));
}

static void everything_goes_round_when_nothing_is_hidden(void **state)
{
    const sw_ring_mask causal = {true, 0};
    const sw_ring_mask none = {false, 0};
    ring balanced = ring_of(16, 4, SW_SEQUENCE_BALANCED, &causal);
    ring open = ring_of(16, 4, SW_SEQUENCE_CONTIGUOUS, &none);

    (void)state;
    for (uint32_t block = 0; block < 4; block++) {
        assert_int_equal(balanced.reach[block], 3);
        assert_int_equal(open.reach[block], 3);
    }
}

static void padding_is_sent_to_nobody(void **state)
{
    const sw_ring_mask mask = {false, 0};
    ring r = ring_of(4, 4, SW_SEQUENCE_CONTIGUOUS, &mask);

    (void)state;
    for (uint32_t i = 0; i < r.local; i++)
        r.positions[2][i] = -1;
    route(&r, &mask);
    assert_int_equal(r.reach[2], 0);
    assert_int_equal(r.reach[1], 3);
}

static bool sees(const sw_ring_mask *mask, int32_t q, int32_t k)
{
    return k >= 0 && (!mask->is_causal || k <= q) &&
           (mask->window == 0 || (int64_t)q - k < (int64_t)mask->window);
}

/* Any positions: a rank that sees a key has the block, and is told so. */
static bool nobody_misses_a_key(gen *g)
{
    const sw_ring_mask mask = {gen_below(g, 2) == 0, gen_below(g, 2) == 0 ? 0 : gen_between(g, 1, 30)};
    ring r = {.n = gen_between(g, 1, MOST_RANKS), .local = gen_below(g, MOST_TOKENS + 1)};

    for (uint32_t rank = 0; rank < r.n; rank++) {
        int32_t base = (int32_t)gen_below(g, 60);
        for (uint32_t i = 0; i < r.local; i++)
            r.positions[rank][i] = base + (int32_t)gen_below(g, 8) - (gen_below(g, 6) == 0 ? 100 : 0);
    }
    route(&r, &mask);
    for (uint32_t i = 0; i < r.n * r.n * r.local * r.local; i++) {
        uint32_t key = i % r.local;
        uint32_t query = i / r.local % r.local;
        uint32_t block = i / r.local / r.local % r.n;
        uint32_t rank = i / r.local / r.local / r.n;
        uint32_t steps = (rank + r.n - block) % r.n;
        bool is_needed = sees(&mask, r.positions[rank][query], r.positions[block][key]);
        bool is_there = r.reach[block] >= steps && steps <= r.most &&
                        sw_ring_sees(&mask, &r.tokens[rank], &r.tokens[block]);
        if (is_needed && !is_there)
            return false;
    }
    return true;
}

static void nobody_misses_a_key_that_it_sees(void **state)
{
    (void)state;
    assert_true(gen_holds(nobody_misses_a_key, 300));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_block_goes_to_the_last_rank_and_no_further),
        cmocka_unit_test(a_window_keeps_blocks_near_home),
        cmocka_unit_test(in_balanced_order_windows_are_seen_by_halves),
        cmocka_unit_test(everything_goes_round_when_nothing_is_hidden),
        cmocka_unit_test(padding_is_sent_to_nobody),
        cmocka_unit_test(nobody_misses_a_key_that_it_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
