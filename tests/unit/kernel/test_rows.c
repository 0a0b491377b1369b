/* Gather, scatter-add, top-k and sorting: against loops that say the same, ties, numbers that are not there.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/short_float.h"
#include "kernel/rows.h"
#include "kernel_op.h"

enum { MOST_ROWS = 160 };

/* Numbers from the flags, -1 and the number of rows among them; a table of as many rows as are taken. */
static sw_gather_args rows_of(const op_case *c, int32_t ids[MOST_ROWS])
{
    for (size_t r = 0; r < c->rows; r++)
        ids[r] = (int32_t)((c->flags + r * r * 3) % (c->rows + 2)) - 1;
    return (sw_gather_args){
        .n_rows = c->rows,
        .n_table = c->rows,
        .width = c->columns,
        .ids = ids,
    };
}

static void run_gather(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    int32_t ids[MOST_ROWS];
    sw_gather_args args = rows_of(c, ids);
    args.table_type = dtype;
    args.table = c->in[0];
    args.out = c->out[0];
    sw_kernel_gather(kernel, dtype, &args);
}

static void run_gather_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    int32_t ids[MOST_ROWS];
    sw_gather_args args = rows_of(c, ids);
    args.rows = c->d_out;
    args.sums = c->d_in[0];
    sw_kernel_scatter_add(kernel, dtype, &args); /* on zeros */
}

/* The weighted sum of experts' rows: out is cleared first. Backward: gather, then rows by weights. */
static void run_combine(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    int32_t ids[MOST_ROWS];
    sw_gather_args args = rows_of(c, ids);
    memset(c->out[0], 0, c->rows * c->columns * (dtype == SW_DTYPE_F64 ? 8 : 4));
    args.rows = c->in[0];
    args.weights = c->in[1];
    args.sums = c->out[0];
    sw_kernel_scatter_add(kernel, dtype, &args);
}

// clang-format off
static const kernel_op ops[] = {
    { "gather",               "M",  "M", 1, run_gather,  run_gather_back, 0, 0 },
    { "weighted scatter-add", "MR", "M", 0, run_combine, NULL,            0, 0 },
};
// clang-format on

#include "kernel_ops_test.h"

static void a_table_of_short_floats_gives_rows_of_f32(void **state)
{
    const float table[3][5] = {
        {1,  2,    3, 4, 5     },
        {-1, 0.5F, 0, 8, 9     },
        {7,  7,    7, 7, -0.25F}
    };
    const int32_t ids[4] = {12, 10, 13, -5}; /* row 0 is number 10 */
    uint16_t narrow[2][3][5];
    float out[4][5];

    (void)state;
    for (size_t i = 0; i < 15; i++) {
        narrow[0][i / 5][i % 5] = sw_bf16_of_float(table[i / 5][i % 5]);
        narrow[1][i / 5][i % 5] = sw_f16_of_float(table[i / 5][i % 5]);
    }
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        for (size_t i = 0; i < 2; i++) {
            sw_gather_args args = {.n_rows = 4,
                                   .n_table = 3,
                                   .width = 5,
                                   .first = 10,
                                   .ids = ids,
                                   .out = out,
                                   .table_type = i == 0 ? SW_DTYPE_BF16 : SW_DTYPE_F16,
                                   .table = narrow[i]};
            sw_kernel_gather(kernel, SW_DTYPE_F32, &args);
            assert_memory_equal(out[0], table[2], sizeof out[0]);
            assert_memory_equal(out[1], table[0], sizeof out[1]);
            for (size_t c = 0; c < 5; c++)
                assert_true(out[2][c] == 0 && out[3][c] == 0);
        }
        sw_kernel_destroy(kernel);
    }
}

/* Element i of a row stands before as many of the chosen as are larger, or as large and before it. */
static bool top_k_is_the_order(gen *g)
{
    enum { MOST = 64 };
    size_t width = gen_between(g, 1, MOST);
    size_t count = gen_below(g, (uint32_t)width + 1);
    float x[MOST];
    float values[MOST];
    int32_t indices[MOST];
    sw_top_k_args args = {
        .n_rows = 1, .width = width, .count = count, .x = x, .indices = indices, .values = values};
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    for (size_t i = 0; i < width; i++)
        x[i] = gen_below(g, 10) == 0 ? NAN : (float)gen_below(g, 12); /* many ties */
    sw_kernel_top_k(kernel, SW_DTYPE_F32, &args);
    sw_kernel_destroy(kernel);
    for (size_t i = 0; i < width; i++) {
        float size = isnan(x[i]) ? -INFINITY : x[i];
        size_t before = 0;
        for (size_t j = 0; j < width; j++) {
            float other = isnan(x[j]) ? -INFINITY : x[j];
            before += other > size || (other == size && j < i);
        }
        if (before < count && (indices[before] != (int32_t)i || memcmp(&values[before], &x[i], 4) != 0))
            return false;
    }
    return true;
}

static void the_largest_come_first_and_of_equal_ones_the_lower_index(void **state)
{
    (void)state;
    assert_true(gen_holds(top_k_is_the_order, 2000));
}

static void rows_of_top_k_are_independent(void **state)
{
    const double x[2][4] = {
        {3, 1, 3, 2},
        {0, 5, 4, 5}
    };
    const int32_t expected[2][3] = {
        {0, 2, 3},
        {1, 3, 2}
    };
    int32_t indices[2][3];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 2);
    sw_top_k_args args = {.n_rows = 2, .width = 4, .count = 3, .x = x, .indices = &indices[0][0]};

    (void)state;
    sw_kernel_top_k(kernel, SW_DTYPE_F64, &args);
    assert_memory_equal(indices, expected, sizeof expected);
    sw_kernel_destroy(kernel);
}

/* ---- top-k with a correction and groups, as DeepSeek's routers choose ---- */

enum { WIDE = 24 };

typedef struct choice_case {
    size_t n_groups;
    size_t n_kept;
    size_t group_best;
    size_t count;
    float x[WIDE];
    float correction[WIDE];
} choice_case;

static float corrected(const choice_case *c, size_t i)
{
    float value = c->x[i] + c->correction[i];
    return isnan(value) ? -INFINITY : value;
}

/* How many of 0 .. n-1 stand before `i`: those that are larger, or as large and before it. */
static size_t rank_of(const float *values, size_t n, size_t i)
{
    size_t before = 0;

    for (size_t j = 0; j < n; j++)
        before += values[j] > values[i] || (values[j] == values[i] && j < i);
    return before;
}

/* The sum of the `group_best` first of a group by rank. */
static float score_of(const choice_case *c, size_t group)
{
    size_t width = WIDE / c->n_groups;
    float values[WIDE];
    float first = 0;
    float second = 0;

    for (size_t i = 0; i < width; i++)
        values[i] = corrected(c, group * width + i);
    for (size_t i = 0; i < width; i++) {
        size_t rank = rank_of(values, width, i);
        first = rank == 0 ? values[i] : first;
        second = rank == 1 ? values[i] : second;
    }
    return c->group_best == 2 ? first + second : first;
}

static void make_choice_case(choice_case *c, gen *g)
{
    static const size_t groups[] = {1, 2, 3, 4, 6, 8};

    c->n_groups = groups[gen_below(g, 6)];
    c->n_kept = c->n_groups == 1 ? 1 : gen_between(g, 1, (uint32_t)c->n_groups);
    c->group_best = gen_between(g, 1, 2);
    c->count = gen_between(g, 1, (uint32_t)(c->n_kept * (WIDE / c->n_groups)));
    for (size_t i = 0; i < WIDE; i++) {
        c->x[i] = gen_below(g, 12) == 0 ? NAN : (float)gen_below(g, 6) / 4; /* many ties */
        c->correction[i] = (float)gen_below(g, 6) / 4 - 1;
    }
}

static bool only_the_best_groups_are_chosen_from(gen *g)
{
    choice_case c;
    float scores[WIDE];
    float values[WIDE];
    float kept[WIDE];
    int32_t indices[WIDE];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    make_choice_case(&c, g);
    sw_top_k_args args = {.n_rows = 1,
                          .width = WIDE,
                          .count = c.count,
                          .n_groups = c.n_groups,
                          .n_kept = c.n_kept,
                          .group_best = c.group_best,
                          .x = c.x,
                          .correction = c.correction,
                          .indices = indices,
                          .values = values};
    sw_kernel_top_k(kernel, SW_DTYPE_F32, &args);
    sw_kernel_destroy(kernel);
    for (size_t k = 0; k < c.n_groups; k++)
        scores[k] = score_of(&c, k);
    size_t n = 0;
    size_t places[WIDE];
    for (size_t i = 0; i < WIDE; i++) {
        if (rank_of(scores, c.n_groups, i / (WIDE / c.n_groups)) < c.n_kept) {
            kept[n] = corrected(&c, i);
            places[n++] = i;
        }
    }
    for (size_t i = 0; i < n; i++) {
        size_t rank = rank_of(kept, n, i);
        if (rank < c.count &&
            (indices[rank] != (int32_t)places[i] || memcmp(&values[rank], &c.x[places[i]], 4) != 0))
            return false;
    }
    return true;
}

static void a_correction_and_groups_decide_the_choice_and_not_the_values(void **state)
{
    (void)state;
    assert_true(gen_holds(only_the_best_groups_are_chosen_from, 2000));
}

static void a_group_of_two_good_ones_beats_one_of_a_better_one(void **state)
{
    const double x[2][6] = {
        {0.9, 0.0, 0.1, 0.6, 0.5, 0.2}, /* by the largest: group 0; by two: group 1 */
        {0.9, 0.0, 0.1, 0.6, 0.5, 0.2}
    };
    const int32_t expected[2][2] = {
        {0, 2},
        {3, 4}
    };
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    for (size_t best = 1; best <= 2; best++) {
        int32_t indices[2] = {-1, -1};
        sw_top_k_args args = {.n_rows = 1,
                              .width = 6,
                              .count = 2,
                              .n_groups = 2,
                              .n_kept = 1,
                              .group_best = best,
                              .x = x[best - 1],
                              .indices = indices};
        sw_kernel_top_k(kernel, SW_DTYPE_F64, &args);
        assert_memory_equal(indices, expected[best - 1], sizeof indices);
    }
    sw_kernel_destroy(kernel);
}

/* ---- sorting ---- */

static void equal_numbers_stay_in_order(void **state)
{
    const int32_t numbers[7] = {3, 0, 3, 1, 0, 3, 1};
    const int32_t in_order[7] = {1, 4, 3, 6, 0, 2, 5};
    const int32_t in_ends[5] = {2, 4, 4, 7, 7}; /* nothing is 2, nothing is 4 */
    int32_t order[7];
    int32_t ends[5];

    (void)state;
    sw_kernel_sort(numbers, 7, 5, order, ends);
    assert_memory_equal(order, in_order, sizeof order);
    assert_memory_equal(ends, in_ends, sizeof ends);
}

static void nothing_is_sorted_into_nothing(void **state)
{
    int32_t ends[2] = {7, 7};

    (void)state;
    sw_kernel_sort(NULL, 0, 2, NULL, ends);
    assert_int_equal(ends[0], 0);
    assert_int_equal(ends[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_gives_what_the_reference_gives),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(each_backward_is_the_slope_of_its_forward),
        cmocka_unit_test(a_table_of_short_floats_gives_rows_of_f32),
        cmocka_unit_test(the_largest_come_first_and_of_equal_ones_the_lower_index),
        cmocka_unit_test(rows_of_top_k_are_independent),
        cmocka_unit_test(a_correction_and_groups_decide_the_choice_and_not_the_values),
        cmocka_unit_test(a_group_of_two_good_ones_beats_one_of_a_better_one),
        cmocka_unit_test(equal_numbers_stay_in_order),
        cmocka_unit_test(nothing_is_sorted_into_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
