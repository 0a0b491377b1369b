/* Gather, scatter-add and top-k: against loops that say the same, ties, numbers that are not there. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_gives_what_the_reference_gives),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(each_backward_is_the_slope_of_its_forward),
        cmocka_unit_test(a_table_of_short_floats_gives_rows_of_f32),
        cmocka_unit_test(the_largest_come_first_and_of_equal_ones_the_lower_index),
        cmocka_unit_test(rows_of_top_k_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
