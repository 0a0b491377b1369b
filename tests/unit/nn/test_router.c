/* Routers: choices and weights worked out by hand, of each kind that a config can ask for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nn/router.h"

enum { EXPERTS = 6 };

static sw_kernel *kernel;
static sw_step *step;

static int open_step(void **state)
{
    (void)state;
    return sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL) != SW_OK ||
           sw_step_create(&step, kernel, NULL) != SW_OK;
}

static int close_step(void **state)
{
    (void)state;
    sw_step_destroy(step);
    sw_kernel_destroy(kernel);
    return 0;
}

static sw_tensor *of_step(uint32_t n_dims, const uint64_t *dims, const double *values)
{
    sw_tensor *x = sw_step_tensor(step, SW_DTYPE_F64, n_dims, dims);

    assert_non_null(x);
    memcpy(sw_tensor_data(x), values, sw_tensor_elems(x) * sizeof *values);
    return x;
}

/* The weight is the identity: logits are what goes in. */
static sw_routing route(const sw_router_settings *settings, const double *logits, uint64_t n_tokens,
                        const double *correction)
{
    const uint64_t of_x[] = {n_tokens, EXPERTS};
    const uint64_t of_weight[] = {EXPERTS, EXPERTS};
    double identity[EXPERTS * EXPERTS] = {0};
    sw_error err = {0};

    for (size_t i = 0; i < EXPERTS; i++)
        identity[i * EXPERTS + i] = 1;
    sw_step_begin(step, false);
    sw_router router = {.settings = settings,
                        .weight = of_step(2, of_weight, identity),
                        .correction = correction == NULL ? NULL : of_step(1, of_weight, correction)};
    sw_routing out = sw_route(&router, step, of_step(2, of_x, logits));
    if (sw_step_status(step, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(out.n_experts, EXPERTS);
    return out;
}

static void expect(const sw_routing *routing, const int32_t *experts, const double *weights)
{
    size_t n = (size_t)sw_tensor_elems(routing->experts);
    const double *found = sw_tensor_data(routing->weights);

    assert_memory_equal(sw_tensor_data(routing->experts), experts, n * sizeof *experts);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(found[i] - weights[i]) <= 1e-12))
            fail_msg("weight %zu is %.15g, not %.15g", i, found[i], weights[i]);
    }
}

/* Logits whose softmax is 1/16, 2/16, 5/16, 4/16, 3/16, 1/16. */
static const double *logits_of_sixteenths(void)
{
    static double logits[EXPERTS];
    const double parts[EXPERTS] = {1, 2, 5, 4, 3, 1};

    for (size_t i = 0; i < EXPERTS; i++)
        logits[i] = log(parts[i]);
    return logits;
}

static const sw_router_settings plain = {.n_experts = EXPERTS, .per_token = 2, .scale = 1};

static void weights_are_the_probabilities_of_the_chosen(void **state)
{
    sw_routing r = route(&plain, logits_of_sixteenths(), 1, NULL);

    (void)state;
    expect(&r, (int32_t[]){2, 3}, (double[]){5. / 16, 4. / 16});
}

static void normalised_weights_sum_to_one_before_the_scale(void **state)
{
    sw_router_settings settings = plain;

    (void)state;
    settings.normalises = true;
    sw_routing r = route(&settings, logits_of_sixteenths(), 1, NULL);
    expect(&r, (int32_t[]){2, 3}, (double[]){5. / 9, 4. / 9});
    settings.scale = 2.5;
    r = route(&settings, logits_of_sixteenths(), 1, NULL);
    expect(&r, (int32_t[]){2, 3}, (double[]){12.5 / 9, 10. / 9});
}

static void a_softmax_of_the_chosen_does_not_see_the_others(void **state)
{
    sw_router_settings settings = plain;

    (void)state;
    settings.scores = SW_SCORES_OF_CHOSEN;
    sw_routing r = route(&settings, logits_of_sixteenths(), 1, NULL);
    expect(&r, (int32_t[]){2, 3}, (double[]){5. / 9, 4. / 9});
}

static void a_correction_changes_the_choice_and_not_the_weights(void **state)
{
    const double logits[EXPERTS] = {0, log(3), 0, 0, -log(3), 0}; /* scores 1/2, 3/4, .., 1/4, 1/2 */
    const double correction[EXPERTS] = {0, -1, 0, 0.125, 1, 0};
    sw_router_settings settings = plain;

    (void)state;
    settings.scores = SW_SCORES_SIGMOID;
    sw_routing r = route(&settings, logits, 1, correction);
    expect(&r, (int32_t[]){4, 3}, (double[]){0.25, 0.5});
    r = route(&settings, logits, 1, NULL);
    expect(&r, (int32_t[]){1, 0}, (double[]){0.75, 0.5});
}

static void groups_are_judged_by_one_or_by_two(void **state)
{
    const double logits[EXPERTS] = {log(9), log(1. / 9), 0, 0, log(3), log(3)}; /* .9 .1 | .5 .5 | .75 .75 */
    sw_router_settings settings = plain;

    (void)state;
    settings.scores = SW_SCORES_SIGMOID;
    settings.n_groups = 3;
    settings.n_kept = 1;
    settings.group_best = 1;
    sw_routing r = route(&settings, logits, 1, NULL);
    expect(&r, (int32_t[]){0, 1}, (double[]){0.9, 0.1});
    settings.group_best = 2;
    r = route(&settings, logits, 1, NULL);
    expect(&r, (int32_t[]){4, 5}, (double[]){0.75, 0.75});
}

static void of_equal_experts_the_lower_ones_are_chosen(void **state)
{
    const double logits[2 * EXPERTS] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1};
    sw_router_settings settings = plain;

    (void)state;
    settings.normalises = true;
    sw_routing r = route(&settings, logits, 2, NULL);
    expect(&r, (int32_t[]){0, 1, 1, 3}, (double[]){0.5, 0.5, 0.5, 0.5});
}

static void scores_that_are_no_numbers_still_choose_experts(void **state)
{
    const double logits[EXPERTS] = {NAN, NAN, NAN, NAN, NAN, NAN};
    sw_routing r = route(&plain, logits, 1, NULL);

    (void)state;
    assert_memory_equal(sw_tensor_data(r.experts), ((int32_t[]){0, 1}), 2 * sizeof(int32_t));
}

static void no_tokens_choose_nothing(void **state)
{
    sw_routing r = route(&plain, logits_of_sixteenths(), 0, NULL);

    (void)state;
    assert_int_equal(sw_tensor_elems(r.experts), 0);
    assert_int_equal(r.experts->dims[1], 2);
}

static const sw_tensor *numbers_of_step(uint32_t n_dims, const uint64_t *dims, const int32_t *values)
{
    sw_tensor *x = sw_step_tensor(step, SW_DTYPE_I32, n_dims, dims);

    assert_non_null(x);
    memcpy(sw_tensor_data(x), values, sw_tensor_elems(x) * sizeof *values);
    return x;
}

static void padding_chooses_nobody(void **state)
{
    const int32_t chosen[] = {3, 1, 0, 2, 5, 4};
    const int32_t places[] = {7, -1, 0};
    const int32_t kept[] = {3, 1, -1, -1, 5, 4};

    (void)state;
    sw_step_begin(step, false);
    const sw_tensor *experts = numbers_of_step(2, (const uint64_t[]){3, 2}, chosen);
    const sw_tensor *found =
        sw_router_choices(step, experts, numbers_of_step(2, (const uint64_t[]){1, 3}, places));
    assert_memory_equal(sw_tensor_data(found), kept, sizeof kept);
    assert_ptr_equal(sw_router_choices(step, experts, NULL), experts);
}

/* Every other place of a row. */
static const sw_tensor *take_half(void *context, sw_step *on, const sw_tensor *places)
{
    const int32_t *at = sw_tensor_data(places);

    (void)on;
    assert_null(context);
    return numbers_of_step(2, (const uint64_t[]){1, 2}, (const int32_t[]){at[0], at[2]});
}

static void a_router_sees_the_places_of_its_stage(void **state)
{
    const sw_router_stage all = {0};
    const sw_router_stage half = {.places = take_half};

    (void)state;
    sw_step_begin(step, false);
    const sw_tensor *places = numbers_of_step(2, (const uint64_t[]){1, 4}, (const int32_t[]){4, 5, 6, 7});
    assert_ptr_equal(sw_router_places(&all, step, places), places);
    assert_null(sw_router_places(&half, step, NULL));
    const sw_tensor *seen = sw_router_places(&half, step, places);
    assert_memory_equal(sw_tensor_data(seen), ((int32_t[]){4, 6}), 2 * sizeof(int32_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_the_probabilities_of_the_chosen),
        cmocka_unit_test(normalised_weights_sum_to_one_before_the_scale),
        cmocka_unit_test(a_softmax_of_the_chosen_does_not_see_the_others),
        cmocka_unit_test(a_correction_changes_the_choice_and_not_the_weights),
        cmocka_unit_test(groups_are_judged_by_one_or_by_two),
        cmocka_unit_test(of_equal_experts_the_lower_ones_are_chosen),
        cmocka_unit_test(scores_that_are_no_numbers_still_choose_experts),
        cmocka_unit_test(no_tokens_choose_nothing),
        cmocka_unit_test(padding_chooses_nobody),
        cmocka_unit_test(a_router_sees_the_places_of_its_stage),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
