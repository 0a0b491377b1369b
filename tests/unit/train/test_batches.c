/* Batches: what stands in them, and that their order follows from seed and number alone. */
#include "train/batches.h"

#include <string.h>

#include "base/alloc.h"
#include "scratch.h"

enum { N_TOKENS = 101, LENGTH = 4, N_WINDOWS = 25 };

static sw_tokens tokens;

static int open_tokens(void **state)
{
    uint16_t ids[N_TOKENS];

    scratch_setup(state);
    for (uint16_t i = 0; i < N_TOKENS; i++)
        ids[i] = i;
    scratch_bytes("t.bin", ids, sizeof ids);
    return sw_tokens_open(&tokens, scratch("t.bin"), SW_TOKENS_U16, N_TOKENS, NULL) != SW_OK;
}

static int close_tokens(void **state)
{
    sw_tokens_close(&tokens);
    return scratch_teardown(state);
}

static sw_batches batches_of(uint64_t seed)
{
    sw_batches batches = {0};

    assert_int_equal(sw_batches_create(&batches, &tokens, LENGTH, seed, "t.bin", NULL), SW_OK);
    assert_int_equal(batches.n_windows, N_WINDOWS);
    return batches;
}

static void each_place_has_the_token_that_follows_as_its_target(void **state)
{
    sw_batches batches = batches_of(3);
    int32_t ids[7 * LENGTH];
    int32_t targets[7 * LENGTH];

    (void)state;
    sw_batches_fill(&batches, 20, 7, ids, targets);
    for (uint32_t i = 0; i < 7 * LENGTH; i++) {
        assert_int_equal(targets[i], ids[i] + 1); /* tokens count up */
        assert_int_equal(ids[i], sw_batches_window(&batches, 20 + i / LENGTH) * LENGTH + i % LENGTH);
    }
    sw_batches_clear(&batches);
}

static void an_epoch_takes_every_window_once_in_an_order_of_its_own(void **state)
{
    sw_batches batches = batches_of(0);
    uint32_t first[N_WINDOWS];

    (void)state;
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        uint32_t times[N_WINDOWS] = {0};
        uint32_t n_equal = 0;
        for (uint32_t i = 0; i < N_WINDOWS; i++) {
            uint32_t window = sw_batches_window(&batches, epoch * N_WINDOWS + i);
            times[window]++;
            n_equal += epoch > 0 && window == first[i];
            if (epoch == 0)
                first[i] = window;
        }
        for (uint32_t i = 0; i < N_WINDOWS; i++)
            assert_int_equal(times[i], 1);
        assert_in_range(n_equal, 0, N_WINDOWS / 2);
    }
    sw_batches_clear(&batches);
}

static void the_order_does_not_depend_on_how_it_is_asked_for(void **state)
{
    sw_batches forward = batches_of(7);
    sw_batches other = batches_of(7);
    sw_batches another_seed = batches_of(8);
    uint32_t order[3 * N_WINDOWS];
    uint32_t n_equal = 0;

    (void)state;
    for (uint32_t i = 0; i < 3 * N_WINDOWS; i++)
        order[i] = sw_batches_window(&forward, i);
    for (uint32_t i = 3 * N_WINDOWS; i > 0; i--)
        assert_int_equal(sw_batches_window(&other, i - 1), order[i - 1]);
    for (uint32_t i = 0; i < 3 * N_WINDOWS; i++)
        n_equal += sw_batches_window(&another_seed, i) == order[i];
    assert_in_range(n_equal, 0, N_WINDOWS);
    sw_batches_clear(&forward);
    sw_batches_clear(&other);
    sw_batches_clear(&another_seed);
}

/* So that a change of the random numbers, or of how they are used, is seen: saved runs go on from them. */
static void the_order_of_a_seed_stays_what_it_is(void **state)
{
    static const uint32_t order[] = {3, 20, 2,  10, 24, 6,  15, 1,  18, 14, 23, 12, 13, 22, 0,
                                     7, 16, 19, 9,  8,  21, 4,  17, 5,  11, 9,  24, 10, 23, 21};
    sw_batches batches = batches_of(1);

    (void)state;
    for (uint32_t i = 0; i < sizeof order / sizeof order[0]; i++)
        assert_int_equal(sw_batches_window(&batches, i), order[i]);
    sw_batches_clear(&batches);
}

static void first_places_are_as_likely_for_every_window(void **state)
{
    uint32_t times[N_WINDOWS] = {0};
    sw_batches batches = batches_of(5);

    (void)state;
    for (uint64_t epoch = 0; epoch < 2500; epoch++)
        times[sw_batches_window(&batches, epoch * N_WINDOWS)]++;
    for (uint32_t i = 0; i < N_WINDOWS; i++)
        assert_in_range(times[i], 60, 140); /* 100 each, four deviations of 10 */
    sw_batches_clear(&batches);
}

static void too_few_tokens_and_no_memory_are_said(void **state)
{
    sw_batches batches = {0};
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_batches_create(&batches, &tokens, N_TOKENS, 0, "t.bin", &err), SW_E_FORMAT);
    assert_string_equal(err.what, "t.bin: 101 tokens, a sequence of 101 needs 102");
    assert_int_equal(sw_batches_create(&batches, &tokens, N_TOKENS - 1, 0, "t.bin", &err), SW_OK);
    sw_batches_clear(&batches);
    sw_alloc_fail_at(1);
    assert_int_equal(sw_batches_create(&batches, &tokens, LENGTH, 0, "t.bin", &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_string_equal(err.what, "t.bin: no memory for the order of 25 sequences");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_tokens, close_tokens)
    const struct CMUnitTest tests[] = {
        TEST(each_place_has_the_token_that_follows_as_its_target),
        TEST(an_epoch_takes_every_window_once_in_an_order_of_its_own),
        TEST(the_order_does_not_depend_on_how_it_is_asked_for),
        TEST(the_order_of_a_seed_stays_what_it_is),
        TEST(first_places_are_as_likely_for_every_window),
        TEST(too_few_tokens_and_no_memory_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
