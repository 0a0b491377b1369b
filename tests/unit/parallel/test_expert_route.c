/* Orders of rows for experts: by expert, of one expert by rank and token, and back. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "gen.h"
#include "parallel/expert_route.h"

enum { MOST = 60, MOST_EXPERTS = 7, MOST_RANKS = 5 };

static void choices_are_sorted_by_expert_and_stay_in_order(void **state)
{
    static const int32_t choices[] = {2, 0, 3, 2, -1, 1, 0, 2};
    static const int32_t sorted[] = {1, 6, 5, 0, 3, 7, 2};
    uint64_t counts[4];
    uint64_t begins[4];
    int32_t order[8];

    (void)state;
    assert_int_equal(sw_choices_count(choices, 8, (sw_range){0, 4}, counts), 7);
    sw_choices_sort(choices, 8, (sw_range){0, 4}, counts, begins, order);
    assert_memory_equal(order, sorted, sizeof sorted);
}

static void choices_of_other_experts_are_left_out(void **state)
{
    static const int32_t choices[] = {2, 0, 3, 2, -1, 1, 0, 2};
    static const int32_t sorted[] = {5, 0, 3, 7};
    uint64_t counts[2];
    uint64_t begins[2];
    int32_t order[8];

    (void)state;
    assert_int_equal(sw_choices_count(choices, 8, (sw_range){1, 3}, counts), 4);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 3);
    sw_choices_sort(choices, 8, (sw_range){1, 3}, counts, begins, order);
    assert_memory_equal(order, sorted, sizeof sorted);
}

/* Two ranks, three experts: rank 0 sends 1, 0, 2 rows, rank 1 sends 2, 0, 1. */
static void rows_are_by_expert_then_by_rank(void **state)
{
    static const uint64_t counts[] = {1, 0, 2, 2, 0, 1};
    static const int32_t places[] = {0, 3, 4, 1, 2, 5};
    static const int32_t wanted[] = {3, 3, 6};
    uint64_t begins[6];
    int32_t ends[3];
    int32_t place[6];
    int32_t back[6];

    (void)state;
    sw_rows_by_expert(counts, 2, 3, begins, ends, place, back);
    assert_memory_equal(place, places, sizeof places);
    assert_memory_equal(ends, wanted, sizeof wanted);
    for (int32_t i = 0; i < 6; i++)
        assert_int_equal(back[place[i]], i);
}

/* Tokens of several ranks, sent by expert, stand at the owner as the tokens of one rank would. */
static bool ranks_make_the_order_of_one(gen *g)
{
    uint32_t n_ranks = gen_between(g, 1, MOST_RANKS);
    uint64_t n_experts = gen_between(g, 1, MOST_EXPERTS);
    sw_range all = {0, n_experts};
    uint64_t n = gen_below(g, MOST + 1);
    int32_t choices[MOST + 1];
    int32_t one[MOST + 1];
    int32_t order[MOST + 1];
    int32_t came[MOST + 1];
    int32_t place[MOST + 1];
    int32_t back[MOST + 1];
    int32_t ends[MOST_EXPERTS];
    uint64_t counts[MOST_RANKS * MOST_EXPERTS];
    uint64_t begins[MOST_RANKS * MOST_EXPERTS];
    uint64_t n_rows = 0;
    bool is_right = true;

    for (uint64_t i = 0; i < n; i++)
        choices[i] = (int32_t)gen_below(g, (uint32_t)n_experts + 1) - 1;
    uint64_t first = 0;
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        uint64_t many = rank == n_ranks - 1 ? n - first : gen_below(g, (uint32_t)(n - first) + 1);
        uint64_t *mine = counts + rank * n_experts;
        uint64_t sent = sw_choices_count(choices + first, many, all, mine);
        sw_choices_sort(choices + first, many, all, mine, begins, order);
        for (uint64_t i = 0; i < sent; i++)
            came[n_rows++] = (int32_t)first + order[i];
        first += many;
    }
    sw_rows_by_expert(counts, n_ranks, n_experts, begins, ends, place, back);
    uint64_t total = sw_choices_count(choices, n, all, counts);
    sw_choices_sort(choices, n, all, counts, begins, one);
    is_right = total == n_rows && (uint64_t)ends[n_experts - 1] == n_rows;
    for (uint64_t i = 0; i < n_rows && is_right; i++)
        is_right = came[place[i]] == one[i] && back[place[i]] == (int32_t)i;
    return is_right;
}

static void the_order_is_that_of_one_rank(void **state)
{
    (void)state;
    assert_true(gen_holds(ranks_make_the_order_of_one, 500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_sorted_by_expert_and_stay_in_order),
        cmocka_unit_test(choices_of_other_experts_are_left_out),
        cmocka_unit_test(rows_are_by_expert_then_by_rank),
        cmocka_unit_test(the_order_is_that_of_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
