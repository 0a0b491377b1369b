/* Elements by rule: each kind's values, and that a chunk does not depend on where it was cut. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/init_values.h"
#include "checkpoint/narrow.h"

enum { N = 1000 };

static void fill(const sw_init_rule *rule, float *out)
{
    sw_random random = sw_random_of(5, "a.weight", 8);
    sw_init_fill(rule, &random, SW_DTYPE_F32, 0, N, (uint8_t *)out);
}

static void a_constant_is_the_same_everywhere(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_CONSTANT, .a = 1.0};
    float found[N];

    (void)state;
    fill(&rule, found);
    for (size_t i = 0; i < N; i++)
        assert_true(found[i] == 1.0F);
}

static void a_uniform_one_stays_between_its_bounds_and_reaches_for_them(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_UNIFORM, .a = 0.25};
    float found[N];
    float least = 1.0F;
    float most = -1.0F;

    (void)state;
    fill(&rule, found);
    for (size_t i = 0; i < N; i++) {
        least = found[i] < least ? found[i] : least;
        most = found[i] > most ? found[i] : most;
    }
    assert_true(least >= -0.25F && least < -0.24F);
    assert_true(most <= 0.25F && most > 0.24F);
}

static void a_count_begins_anew_in_each_row(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_LOG_COUNT, .period = 16};
    float found[N];

    (void)state;
    fill(&rule, found);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)found[i] - log((double)(i % 16 + 1))) < 1e-6);
}

static void a_decay_is_the_logarithm_of_what_lies_between_the_bounds(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_LOG_UNIFORM, .a = 1.0, .b = 16.0};
    float found[N];
    double sum = 0.0;

    (void)state;
    fill(&rule, found);
    for (size_t i = 0; i < N; i++) {
        double decay = exp((double)found[i]);
        assert_true(decay >= 1.0 && decay <= 16.00001);
        sum += decay;
    }
    assert_true(fabs(sum / N - 8.5) < 0.7);
}

static void the_softplus_of_a_step_is_spread_over_its_orders_of_magnitude(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_TIME_STEP, .a = 0.001, .b = 0.1};
    float found[N];
    size_t n_small = 0;

    (void)state;
    fill(&rule, found);
    for (size_t i = 0; i < N; i++) {
        double step = log1p(exp((double)found[i]));
        assert_true(step >= 0.001 * (1.0 - 1e-5) && step <= 0.1 * (1.0 + 1e-5));
        n_small += step < 0.01;
    }
    assert_in_range(n_small, N / 2 - 80, N / 2 + 80);
}

static void a_chunk_has_the_bytes_of_its_place_in_the_whole(void **state)
{
    static const sw_init_kind kinds[] = {SW_INIT_CONSTANT,  SW_INIT_NORMAL,      SW_INIT_UNIFORM,
                                         SW_INIT_LOG_COUNT, SW_INIT_LOG_UNIFORM, SW_INIT_TIME_STEP};
    static const sw_dtype dtypes[] = {SW_DTYPE_F32, SW_DTYPE_BF16, SW_DTYPE_F16};
    static uint8_t whole[N * 4];
    static uint8_t pieces[N * 4];
    sw_random random = sw_random_of(9, "b", 1);

    (void)state;
    for (size_t k = 0; k < SW_COUNT(kinds) * SW_COUNT(dtypes); k++) {
        sw_init_rule rule = {.kind = kinds[k / 3], .a = 0.01, .b = 0.1, .period = 7};
        sw_dtype dtype = dtypes[k % 3];
        size_t width = sw_dtype_bits(dtype) / 8;
        sw_init_fill(&rule, &random, dtype, 0, N, whole);
        for (size_t at = 0, n = 1; at < N; at += n, n = n % 300 + 97) {
            size_t n_now = n < N - at ? n : N - at;
            sw_init_fill(&rule, &random, dtype, at, n_now, pieces + at * width);
        }
        assert_memory_equal(pieces, whole, N * width);
    }
}

static void a_narrow_model_is_the_wide_one_rounded(void **state)
{
    static const sw_init_rule rule = {.kind = SW_INIT_NORMAL, .a = 0.02};
    float wide[N];
    uint16_t narrow[N];
    sw_random random = sw_random_of(5, "a.weight", 8);

    (void)state;
    fill(&rule, wide);
    sw_init_fill(&rule, &random, SW_DTYPE_BF16, 0, N, (uint8_t *)narrow);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(narrow[i], sw_bf16_of(wide[i]));
    sw_init_fill(&rule, &random, SW_DTYPE_F16, 0, N, (uint8_t *)narrow);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(narrow[i], sw_f16_of(wide[i]));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_is_the_same_everywhere),
        cmocka_unit_test(a_uniform_one_stays_between_its_bounds_and_reaches_for_them),
        cmocka_unit_test(a_count_begins_anew_in_each_row),
        cmocka_unit_test(a_decay_is_the_logarithm_of_what_lies_between_the_bounds),
        cmocka_unit_test(the_softplus_of_a_step_is_spread_over_its_orders_of_magnitude),
        cmocka_unit_test(a_chunk_has_the_bytes_of_its_place_in_the_whole),
        cmocka_unit_test(a_narrow_model_is_the_wide_one_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
