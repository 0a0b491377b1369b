/* Verdicts of measurements and their report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli-mpi/bench.h"

static bool is_met(sw_bench_bar_kind kind, double bar, double ours, double ratio)
{
    sw_bench_result result = {
        .bar_kind = kind, .bar = bar, .figures = {.ours = ours, .bare = 1, .ratio = ratio}
    };
    return sw_bench_is_met(&result);
}

static void a_bar_is_met_on_its_own_side(void **state)
{
    (void)state;
    assert_true(is_met(SW_BENCH_RATIO, 1.1, 5, 1.1));
    assert_false(is_met(SW_BENCH_RATIO, 1.1, 5, 1.2));
    assert_true(is_met(SW_BENCH_LEAST, 0.9, 5, 0.9));
    assert_true(is_met(SW_BENCH_LEAST, 0.9, 5, 1.2));
    assert_false(is_met(SW_BENCH_LEAST, 0.9, 5, 0.8));
    assert_true(is_met(SW_BENCH_SECONDS, 1e-4, 1e-4, 9));
    assert_false(is_met(SW_BENCH_SECONDS, 1e-4, 2e-4, 0.1));
    assert_true(is_met(SW_BENCH_SHOWN, 0, 5, 9));
}

static void the_report_counts_only_what_is_judged(void **state)
{
    sw_bench_results results = {.n = 0};
    sw_bench_result *row = NULL;
    sw_buffer out = {0};
    sw_error err = {0};
    const sw_bench_result rows[] = {
        {.section = "s",
         .name = "fast",
         .unit = "GB/s",
         .figures = {9, 10, 0.9},
         .bar_kind = SW_BENCH_LEAST,
         .bar = 0.9                                                                          },
        {.section = "s",
         .name = "slow",
         .unit = "GB/s",
         .figures = {1, 10, 0.1},
         .bar_kind = SW_BENCH_LEAST,
         .bar = 0.9                                                                          },
        {.section = "s", .name = "shown", .bytes = 8, .figures = {1, 2, 0.5}},
        {.section = "s",
         .name = "quick",
         .bytes = 8,
         .figures = {1e-6, 2e-6, 0.5},
         .bar_kind = SW_BENCH_SECONDS,
         .bar = 1e-4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sw_bench_add(&results, &rows[i], &row, &err), SW_OK);
    sw_bench_put_text(&results, &out);
    const char *text = sw_buffer_text(&out);
    assert_non_null(strstr(text, "0.90  at least 0.90  ok\n"));
    assert_non_null(strstr(text, "0.10  at least 0.90  MISSED\n"));
    assert_non_null(strstr(text, "0.50\n"));
    assert_non_null(strstr(text, "0.50  at most 100 us  ok\n"));
    assert_non_null(strstr(text, "\n2 of 3 bars kept\n"));
    sw_buffer_clear(&out);
}

static void a_run_is_unsteady_when_a_probe_differs_by_more_than_15_percent(void **state)
{
    sw_bench_results results = {.n = 0};
    sw_buffer out = {0};

    (void)state;
    sw_bench_note(&results, "read", "GB/s", 40.0);
    sw_bench_note(&results, "copy", "GB/s", 30.0);
    sw_bench_note(&results, "read", "GB/s", 46.0);
    sw_bench_note(&results, "copy", "GB/s", 26.1);
    assert_int_equal(results.n_probes, 2);
    assert_null(sw_bench_unsteady(&results));
    sw_bench_note(&results, "copy", "GB/s", 26.0); /* 30 / 26 is 1.154 */
    assert_non_null(sw_bench_unsteady(&results));
    assert_string_equal(sw_bench_unsteady(&results)->name, "copy");
    sw_bench_put_text(&results, &out);
    const char *text = sw_buffer_text(&out);
    assert_non_null(strstr(text, "unstable: copy has changed by more than 15 %, measure again\n"));
    sw_buffer_clear(&out);
}

static void the_ratio_is_that_of_a_round_whatever_the_machine_does_between_them(void **state)
{
    double ours[] = {2, 20, 2, 20, 2};
    double bare[] = {1, 10, 1, 10, 1};
    sw_bench_figures figures;

    (void)state;
    sw_bench_middle(&figures, ours, bare, 5);
    assert_true(figures.ratio == 2 && figures.ours == 2 && figures.bare == 1);
}

static void a_list_that_is_full_takes_no_more(void **state)
{
    sw_bench_results results = {.n = SW_BENCH_MOST_RESULTS};
    const sw_bench_result row = {.section = "s", .name = "n"};
    sw_bench_result *out = NULL;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_bench_add(&results, &row, &out, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "more than 96 measurements");
    assert_null(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_is_met_on_its_own_side),
        cmocka_unit_test(the_report_counts_only_what_is_judged),
        cmocka_unit_test(a_run_is_unsteady_when_a_probe_differs_by_more_than_15_percent),
        cmocka_unit_test(the_ratio_is_that_of_a_round_whatever_the_machine_does_between_them),
        cmocka_unit_test(a_list_that_is_full_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
