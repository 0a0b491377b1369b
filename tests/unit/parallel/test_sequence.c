/* Orders of a sequence over ranks: every token once, padding at the end, labels of the next token. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "parallel/sequence.h"

enum { MOST_TOKENS = 40, MOST_PARTS = 8, MOST_PADDED = 64 };

static sw_sequence sequence_of(uint64_t n, uint32_t parts, sw_sequence_order order)
{
    sw_sequence sequence;

    assert_int_equal(sw_sequence_make(&sequence, n, parts, order, NULL), SW_OK);
    return sequence;
}

/* Call `check` with every small sequence. */
static void for_all(void (*check)(const sw_sequence *sequence))
{
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts++) {
        for (uint64_t n = 0; n <= MOST_TOKENS; n++) {
            for (unsigned order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++) {
                sw_sequence sequence = sequence_of(n, parts, (sw_sequence_order)order);
                check(&sequence);
            }
        }
    }
}

static void check_places(const sw_sequence *s)
{
    uint64_t local = sw_sequence_local(s);
    uint32_t times[MOST_PADDED] = {0};

    assert_int_equal(local * s->parts, s->n_padded);
    assert_true(s->n_padded <= MOST_PADDED);
    for (uint32_t rank = 0; rank < s->parts; rank++) {
        for (uint64_t at = 0; at < local; at++) {
            uint64_t token = sw_sequence_token(s, rank, at);
            assert_true(token < s->n_padded);
            times[token]++;
            sw_sequence_place place = sw_sequence_place_of(s, token);
            assert_int_equal(place.rank, rank);
            assert_int_equal(place.at, at);
        }
    }
    for (uint64_t token = 0; token < s->n_padded; token++)
        assert_int_equal(times[token], 1);
}

static void every_token_is_in_one_place(void **state)
{
    (void)state;
    for_all(check_places);
}

static void check_padding(const sw_sequence *s)
{
    uint64_t unit = s->order == SW_SEQUENCE_BALANCED ? 2 * (uint64_t)s->parts : s->parts;

    assert_true(s->n_padded >= s->n_tokens && s->n_padded - s->n_tokens < unit);
    assert_int_equal(s->n_padded % unit, 0);
    if (s->parts == 1)
        assert_int_equal(s->n_padded, s->n_tokens);
}

static void padding_is_the_least_that_ranks_divide(void **state)
{
    (void)state;
    for_all(check_padding);
}

/* What a rank has to do in causal attention: over its tokens the number of tokens that they see. */
static void check_balance(const sw_sequence *s)
{
    uint64_t first = 0;

    if (s->order != SW_SEQUENCE_BALANCED)
        return;
    for (uint32_t rank = 0; rank < s->parts; rank++) {
        uint64_t work = 0;
        for (uint64_t at = 0; at < sw_sequence_local(s); at++)
            work += sw_sequence_token(s, rank, at) + 1;
        if (rank == 0)
            first = work;
        assert_int_equal(work, first);
    }
}

static void in_balanced_order_all_ranks_have_the_same_to_do(void **state)
{
    (void)state;
    for_all(check_balance);
}

static void the_orders_of_eight_tokens_over_two_ranks(void **state)
{
    static const uint64_t balanced[2][4] = {
        {0, 1, 6, 7},
        {2, 3, 4, 5}
    };
    sw_sequence s = sequence_of(8, 2, SW_SEQUENCE_BALANCED);
    sw_sequence c = sequence_of(8, 2, SW_SEQUENCE_CONTIGUOUS);

    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        for (uint64_t at = 0; at < 4; at++) {
            assert_int_equal(sw_sequence_token(&s, rank, at), balanced[rank][at]);
            assert_int_equal(sw_sequence_token(&c, rank, at), rank * 4 + at);
        }
    }
}

enum { ROWS = 2 };

/* Cut for every rank, and put the parts of a rank where the sequence has them. */
typedef struct cut {
    int32_t ids[ROWS][MOST_PADDED];
    int32_t targets[ROWS][MOST_PADDED];
    int32_t positions[ROWS][MOST_PADDED];
} cut;

static void cut_all(const sw_sequence *s, const sw_batch *batch, cut *out)
{
    int32_t ids[ROWS * MOST_PADDED];
    int32_t targets[ROWS * MOST_PADDED];
    int32_t positions[ROWS * MOST_PADDED];
    uint64_t local = sw_sequence_local(s);

    for (uint32_t rank = 0; rank < s->parts; rank++) {
        sw_sequence_cut(s, rank, batch, &(sw_batch_part){ids, targets, positions});
        for (uint64_t i = 0; i < ROWS * local; i++) {
            uint64_t token = sw_sequence_token(s, rank, i % local);
            out->ids[i / local][token] = ids[i];
            out->targets[i / local][token] = targets[i];
            out->positions[i / local][token] = positions[i];
        }
    }
}

static void fill(int32_t *ids, uint64_t n, int32_t first)
{
    for (uint64_t i = 0; i < ROWS * n; i++)
        ids[i] = first + (int32_t)i;
}

static void check_labels(const sw_sequence *s)
{
    int32_t ids[ROWS * MOST_TOKENS];
    int32_t labels[ROWS * MOST_TOKENS];
    static cut all;

    fill(ids, s->n_tokens, 100);
    fill(labels, s->n_tokens, 500);
    cut_all(s, &(sw_batch){.n_rows = ROWS, .ids = ids, .labels = labels}, &all);
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint64_t t = 0; t < s->n_padded; t++) {
            bool is_real = t < s->n_tokens;
            uint64_t at = row * s->n_tokens + t;
            assert_int_equal(all.ids[row][t], is_real ? ids[at] : 0);
            assert_int_equal(all.positions[row][t], is_real ? (int32_t)t : -1);
            assert_int_equal(all.targets[row][t], t + 1 < s->n_tokens ? labels[at + 1] : -1);
        }
    }
}

/* Case 66: every token but the last has a target, also the last one of each rank. */
static void bug_66_labels_are_shifted_before_the_cut(void **state)
{
    (void)state;
    for_all(check_labels);
}

static void labels_are_the_ids_when_none_are_given(void **state)
{
    static const int32_t ids[ROWS * 4] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t targets[ROWS][4] = {
        {2, 3, 4, -1},
        {6, 7, 8, -1}
    };
    sw_sequence s = sequence_of(4, 2, SW_SEQUENCE_CONTIGUOUS);
    static cut all;

    (void)state;
    cut_all(&s, &(sw_batch){.n_rows = ROWS, .ids = ids}, &all);
    for (uint64_t row = 0; row < ROWS; row++)
        assert_memory_equal(all.targets[row], targets[row], sizeof targets[row]);
}

/* Targets of windows, whose last token has one too. */
static void targets_that_are_shifted_already_stay_with_their_tokens(void **state)
{
    static const int32_t ids[ROWS * 3] = {1, 2, 3, 5, 6, 7};
    static const int32_t given[ROWS * 3] = {2, 3, 4, 6, 7, 8};
    static const int32_t targets[ROWS][4] = {
        {2, 3, 4, -1},
        {6, 7, 8, -1}
    };
    sw_sequence s = sequence_of(3, 2, SW_SEQUENCE_BALANCED);
    static cut all;

    (void)state;
    cut_all(&s, &(sw_batch){.n_rows = ROWS, .ids = ids, .targets = given}, &all);
    for (uint64_t row = 0; row < ROWS; row++)
        assert_memory_equal(all.targets[row], targets[row], sizeof targets[row]);
}

static void orders_have_names(void **state)
{
    (void)state;
    assert_int_equal(sw_sequence_order_of_name("contiguous"), SW_SEQUENCE_CONTIGUOUS);
    assert_int_equal(sw_sequence_order_of_name("balanced"), SW_SEQUENCE_BALANCED);
    assert_int_equal(sw_sequence_order_of_name("balance"), SW_SEQUENCE_ORDER_COUNT_);
}

/* A row that came padded at its end, and one at its begin. */
static void padding_that_rows_came_with_is_nobodys_target(void **state)
{
    static const int32_t ids[ROWS * 4] = {1, 2, 9, 9, 9, 6, 7, 8};
    static const int32_t positions[ROWS * 4] = {0, 1, -1, -1, -1, 0, 1, 2};
    static const int32_t targets[ROWS][4] = {
        {2,  -1, -1, -1},
        {-1, 7,  8,  -1}
    };
    sw_sequence s = sequence_of(4, 2, SW_SEQUENCE_BALANCED);
    static cut all;

    (void)state;
    cut_all(&s, &(sw_batch){.n_rows = ROWS, .ids = ids, .positions = positions}, &all);
    for (uint64_t row = 0; row < ROWS; row++) {
        assert_memory_equal(all.targets[row], targets[row], sizeof targets[row]);
        assert_memory_equal(all.positions[row], positions + row * 4, sizeof targets[row]);
    }
}

static void check_restored(const sw_sequence *s)
{
    int32_t gathered[ROWS][MOST_PADDED] = {{0}};
    int32_t packed[ROWS * MOST_PADDED];
    int32_t restored[ROWS * MOST_TOKENS + 1];
    uint64_t local = sw_sequence_local(s);

    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint64_t i = 0; i < s->n_padded; i++)
            gathered[row][i] = (int32_t)(1000 * row + sw_sequence_token(s, (uint32_t)(i / local), i % local));
        memcpy(packed + row * s->n_padded, gathered[row], s->n_padded * sizeof *packed);
    }
    sw_sequence_restore(s, ROWS, sizeof *packed, packed, restored);
    for (uint64_t i = 0; i < ROWS * s->n_tokens; i++)
        assert_int_equal(restored[i], 1000 * (i / s->n_tokens) + i % s->n_tokens);
}

static void what_was_gathered_comes_back_in_its_order(void **state)
{
    (void)state;
    for_all(check_restored);
}

static void sequences_that_there_are_not_are_refused(void **state)
{
    sw_sequence s;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_sequence_make(&s, 8, 0, SW_SEQUENCE_CONTIGUOUS, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_sequence_make(&s, 8, 2, SW_SEQUENCE_ORDER_COUNT_, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a sequence over 2 ranks in order 2");
    assert_int_equal(sw_sequence_make(&s, (uint64_t)1 << 31, 2, SW_SEQUENCE_BALANCED, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "a sequence of 2147483648 tokens");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_is_in_one_place),
        cmocka_unit_test(padding_is_the_least_that_ranks_divide),
        cmocka_unit_test(in_balanced_order_all_ranks_have_the_same_to_do),
        cmocka_unit_test(the_orders_of_eight_tokens_over_two_ranks),
        cmocka_unit_test(bug_66_labels_are_shifted_before_the_cut),
        cmocka_unit_test(labels_are_the_ids_when_none_are_given),
        cmocka_unit_test(targets_that_are_shifted_already_stay_with_their_tokens),
        cmocka_unit_test(orders_have_names),
        cmocka_unit_test(padding_that_rows_came_with_is_nobodys_target),
        cmocka_unit_test(what_was_gathered_comes_back_in_its_order),
        cmocka_unit_test(sequences_that_there_are_not_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
