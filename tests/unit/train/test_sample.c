/* Sampling: what may follow, how often it does, and that it can be repeated. */
#include "train/sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { VOCABULARY = 6, DRAWS = 20000 };

/* Weights 4 1 2 8 1 0 of 16 at temperature 1. */
static void fill(float logits[VOCABULARY])
{
    static const double weights[VOCABULARY] = {4, 1, 2, 8, 1, 0};

    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = weights[i] > 0 ? (float)log(weights[i]) : -INFINITY;
}

/* How often each token comes, in sixteenths of all draws. */
static void draw(const sw_sampling *how, double shares[VOCABULARY])
{
    sw_sampler sampler = {0};
    float logits[VOCABULARY];

    fill(logits);
    memset(shares, 0, VOCABULARY * sizeof *shares);
    assert_int_equal(sw_sampler_create(&sampler, how, VOCABULARY, NULL), SW_OK);
    for (uint64_t i = 0; i < DRAWS; i++) {
        int32_t token = sw_sampler_next(&sampler, logits, i);
        assert_in_range(token, 0, VOCABULARY - 1);
        shares[token] += 16.0 / DRAWS;
    }
    sw_sampler_clear(&sampler);
}

static void expect_shares(const sw_sampling *how, const double expected[VOCABULARY])
{
    double shares[VOCABULARY];

    draw(how, shares);
    for (int i = 0; i < VOCABULARY; i++) {
        assert_true(fabs(shares[i] - expected[i]) < 0.25); /* four deviations at most */
        assert_true(expected[i] > 0.0 || shares[i] == 0.0);
    }
}

static void tokens_come_as_often_as_they_weigh(void **state)
{
    const sw_sampling how = {1.0, 0, 1.0, 5};
    const double expected[VOCABULARY] = {4, 1, 2, 8, 1, 0};

    (void)state;
    expect_shares(&how, expected);
}

static void temperature_flattens(void **state)
{
    const sw_sampling how = {2.0, 0, 1.0, 5}; /* roots of the weights */
    double roots[VOCABULARY] = {2, 1, sqrt(2), sqrt(8), 1, 0};
    double sum = 4 + sqrt(2) + sqrt(8);

    (void)state;
    for (int i = 0; i < VOCABULARY; i++)
        roots[i] *= 16.0 / sum;
    expect_shares(&how, roots);
}

static void top_k_leaves_the_likeliest_the_lower_one_of_equals(void **state)
{
    const sw_sampling two = {1.0, 2, 1.0, 5};
    const double of_two[VOCABULARY] = {16.0 / 3, 0, 0, 32.0 / 3, 0, 0};
    const sw_sampling four = {1.0, 4, 1.0, 5};
    const double of_four[VOCABULARY] = {64.0 / 15, 16.0 / 15, 32.0 / 15, 128.0 / 15, 0, 0};

    (void)state;
    expect_shares(&two, of_two);
    expect_shares(&four, of_four);
}

static void top_p_leaves_the_fewest_that_have_it(void **state)
{
    const sw_sampling half = {1.0, 0, 0.5, 5};
    const double only[VOCABULARY] = {0, 0, 0, 16, 0, 0};
    const sw_sampling more = {1.0, 0, 0.51, 5};
    const double of_more[VOCABULARY] = {16.0 / 3, 0, 0, 32.0 / 3, 0, 0};
    const sw_sampling of_three = {1.0, 3, 0.9, 5}; /* of 14, not of 16 */
    const double all_three[VOCABULARY] = {64.0 / 14, 0, 32.0 / 14, 128.0 / 14, 0, 0};

    (void)state;
    expect_shares(&half, only);
    expect_shares(&more, of_more);
    expect_shares(&of_three, all_three);
}

static void without_temperature_the_first_of_the_largest_is_taken(void **state)
{
    const sw_sampling how = SW_SAMPLING_GREEDY;
    const float logits[] = {-1, 3, 3, 2, -9, 0};
    sw_sampler sampler = {0};

    (void)state;
    assert_int_equal(sw_sampler_create(&sampler, &how, VOCABULARY, NULL), SW_OK);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(sw_sampler_next(&sampler, logits, i), 1);
    sw_sampler_clear(&sampler);
}

static void a_seed_gives_the_same_tokens_again_and_another_seed_others(void **state)
{
    const sw_sampling how = {1.0, 0, 0.99, 11};
    const sw_sampling other = {1.0, 0, 0.99, 12};
    sw_sampler samplers[3];
    float logits[VOCABULARY];
    uint32_t n_equal = 0;

    (void)state;
    fill(logits);
    assert_int_equal(sw_sampler_create(&samplers[0], &how, VOCABULARY, NULL), SW_OK);
    assert_int_equal(sw_sampler_create(&samplers[1], &how, VOCABULARY, NULL), SW_OK);
    assert_int_equal(sw_sampler_create(&samplers[2], &other, VOCABULARY, NULL), SW_OK);
    for (uint64_t i = 100; i > 0; i--) {
        int32_t token = sw_sampler_next(&samplers[0], logits, i);
        sw_sampler_next(&samplers[1], logits, 7 * i);
        assert_int_equal(sw_sampler_next(&samplers[1], logits, i), token);
        n_equal += sw_sampler_next(&samplers[2], logits, i) == token;
    }
    assert_in_range(n_equal, 10, 60);
    for (int i = 0; i < 3; i++)
        sw_sampler_clear(&samplers[i]);
}

static void logits_that_are_no_numbers_give_no_token(void **state)
{
    const sw_sampling hows[] = {
        SW_SAMPLING_GREEDY, {1.0, 2, 0.9, 0}
    };
    const float with_nan[] = {0, 1, NAN, 2, 0, 0};
    const float nothing[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const float infinite[] = {0, INFINITY, 0, 0, 0, 0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        sw_sampler sampler = {0};
        assert_int_equal(sw_sampler_create(&sampler, &hows[i], VOCABULARY, NULL), SW_OK);
        assert_int_equal(sw_sampler_next(&sampler, with_nan, 0), -1);
        assert_int_equal(sw_sampler_next(&sampler, nothing, 0), -1);
        assert_int_equal(sw_sampler_next(&sampler, infinite, 0), -1);
        sw_sampler_clear(&sampler);
    }
}

static void choosing_allocates_nothing_and_lack_of_memory_is_said(void **state)
{
    const sw_sampling how = {1.0, 2, 0.9, 0};
    sw_sampler sampler = {0};
    sw_error err = {0};
    float logits[VOCABULARY];

    (void)state;
    fill(logits);
    for (uint64_t n = 1; n <= 2; n++) {
        sw_alloc_fail_at(n);
        assert_int_equal(sw_sampler_create(&sampler, &how, VOCABULARY, &err), SW_E_NO_MEMORY);
        assert_string_equal(err.what, "no memory to choose among 6 tokens");
    }
    sw_alloc_fail_at(0);
    assert_int_equal(sw_sampler_create(&sampler, &how, VOCABULARY, NULL), SW_OK);
    int64_t live = sw_alloc_live();
    assert_in_range(sw_sampler_next(&sampler, logits, 0), 0, VOCABULARY - 1);
    assert_int_equal(sw_alloc_live(), live);
    sw_sampler_clear(&sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_come_as_often_as_they_weigh),
        cmocka_unit_test(temperature_flattens),
        cmocka_unit_test(top_k_leaves_the_likeliest_the_lower_one_of_equals),
        cmocka_unit_test(top_p_leaves_the_fewest_that_have_it),
        cmocka_unit_test(without_temperature_the_first_of_the_largest_is_taken),
        cmocka_unit_test(a_seed_gives_the_same_tokens_again_and_another_seed_others),
        cmocka_unit_test(logits_that_are_no_numbers_give_no_token),
        cmocka_unit_test(choosing_allocates_nothing_and_lack_of_memory_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
