/* Functions of single numbers, and tables of the rotary embedding. */
#include "kernel/scalar.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void functions_have_their_textbook_values(void **state)
{
    (void)state;
    assert_true(sw_square_root(2.25) == 1.5);
    assert_true(sw_power(2, -3) == 0.125);
    assert_true(fabs(sw_logarithm(10) - 2.302585092994046) < 1e-15);
}

/* Row p is scale * (cos, sin) of p times each frequency; at position 0 the cosine is the scale. */
static void tables_turn_by_position_and_frequency(void **state)
{
    static const float frequencies[] = {1, 0.25F, 0.001F};
    float cosines[5 * 3];
    float sines[5 * 3];
    double wide_cosines[5 * 3];
    double wide_sines[5 * 3];
    sw_rotary_tables tables = {.n_positions = 5,
                               .n_frequencies = 3,
                               .frequencies = frequencies,
                               .scale = 0.5,
                               .cos = cosines,
                               .sin = sines};

    (void)state;
    sw_rotary_tables_fill(SW_DTYPE_F32, &tables);
    tables.cos = wide_cosines;
    tables.sin = wide_sines;
    sw_rotary_tables_fill(SW_DTYPE_F64, &tables);
    for (size_t p = 0; p < 5; p++) {
        for (size_t j = 0; j < 3; j++) {
            double angle = (double)((float)p * frequencies[j]);
            assert_true(fabs(wide_cosines[p * 3 + j] - 0.5 * cos(angle)) < 1e-15);
            assert_true(fabs(wide_sines[p * 3 + j] - 0.5 * sin(angle)) < 1e-15);
            assert_true(cosines[p * 3 + j] == (float)wide_cosines[p * 3 + j]);
            assert_true(sines[p * 3 + j] == (float)wide_sines[p * 3 + j]);
        }
    }
    assert_true(cosines[0] == 0.5F && sines[2] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_their_textbook_values),
        cmocka_unit_test(tables_turn_by_position_and_frequency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
