/* Learning rates against the formulas as transformers writes them. */
#include "train/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* transformers/optimization.py: the factor on the rate. */
static double factor(sw_schedule_kind kind, uint64_t step, uint64_t warmup, uint64_t total)
{
    double rest = fmax(1.0, (double)total - (double)warmup);

    if (step < warmup)
        return (double)step / fmax(1.0, (double)warmup);
    switch (kind) {
    case SW_SCHEDULE_LINEAR:
        return fmax(0.0, ((double)total - (double)step) / rest);
    case SW_SCHEDULE_COSINE:
        return fmax(0.0, 0.5 * (1.0 + cos(acos(-1.0) * 0.5 * 2.0 * ((double)step - (double)warmup) / rest)));
    default:
        return 1.0;
    }
}

static void rates_are_those_of_transformers(void **state)
{
    static const uint64_t cases[][2] = {
        {0,   10  },
        {3,   10  },
        {1,   2   },
        {0,   1   },
        {10,  10  },
        {100, 1000},
        {5,   3   }
    };

    (void)state;
    for (int kind = 0; kind < SW_SCHEDULE_COUNT_; kind++) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            sw_schedule schedule = {(sw_schedule_kind)kind, 3e-4, cases[c][0], cases[c][1]};
            for (uint64_t step = 0; step < cases[c][1]; step++) {
                double expected = 3e-4 * factor((sw_schedule_kind)kind, step, cases[c][0], cases[c][1]);
                double error = fabs(sw_schedule_rate(&schedule, step) - expected);
                assert_true(error <= 1e-15 * least(1.0, 3e-4));
            }
        }
    }
}

static void the_end_of_a_schedule_is_no_rate_at_all(void **state)
{
    sw_schedule linear = {SW_SCHEDULE_LINEAR, 1.0, 2, 10};
    sw_schedule cosine = {SW_SCHEDULE_COSINE, 1.0, 2, 10};
    sw_schedule constant = {SW_SCHEDULE_CONSTANT, 1.0, 2, 10};

    (void)state;
    assert_true(sw_schedule_rate(&linear, 10) == 0.0 && sw_schedule_rate(&linear, 99) == 0.0);
    assert_true(sw_schedule_rate(&cosine, 10) == 0.0 && sw_schedule_rate(&cosine, 99) == 0.0);
    assert_true(sw_schedule_rate(&constant, 99) == 1.0);
}

static void schedules_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < SW_SCHEDULE_COUNT_; i++)
        assert_int_equal(sw_schedule_of_name(sw_schedule_name((sw_schedule_kind)i)), i);
    assert_int_equal(sw_schedule_of_name("cos"), SW_SCHEDULE_COUNT_);
    assert_null(sw_schedule_name(SW_SCHEDULE_COUNT_));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_transformers),
        cmocka_unit_test(the_end_of_a_schedule_is_no_rate_at_all),
        cmocka_unit_test(schedules_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
