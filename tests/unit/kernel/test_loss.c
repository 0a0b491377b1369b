/* Cross-entropy: variants, threads, slopes, ignored rows, a vocabulary cut over ranks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/loss.h"
#include "kernel/softmax.h"
#include "kernel_op.h"

enum { MOST_ROWS = 160 };

/* Targets from the flags; every fifth row is ignored. Outputs: loss, max, sum, target_x. */
static sw_loss_args loss_of(const op_case *c, int32_t targets[MOST_ROWS])
{
    for (size_t r = 0; r < c->rows; r++)
        targets[r] = r % 5 == 4 || c->columns == 0 ? -100 : (int32_t)((c->flags + r * 7) % c->columns);
    return (sw_loss_args){
        .n_rows = c->rows,
        .width = c->columns,
        .x = c->in[0],
        .targets = targets,
        .factor = 1,
        .loss = c->out[0],
        .max = c->out[1],
        .sum = c->out[2],
        .target_x = c->out[3],
        .d_x = c->d_in[0],
    };
}

static void run_loss(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    int32_t targets[MOST_ROWS];
    sw_loss_args args = loss_of(c, targets);
    sw_kernel_cross_entropy(kernel, dtype, &args);
}

/* Rows are independent, so the gradient of a row's loss times d_out is that of the whole. */
static void run_loss_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    int32_t targets[MOST_ROWS];
    sw_loss_args args = loss_of(c, targets);
    size_t bytes = dtype == SW_DTYPE_F64 ? 8 : 4;

    for (size_t r = 0; r < c->rows; r++) {
        sw_loss_args row = args;
        row.n_rows = 1;
        row.x = (const char *)args.x + r * c->columns * bytes;
        row.targets = targets + r;
        row.max = (char *)args.max + r * bytes;
        row.sum = (char *)args.sum + r * bytes;
        row.d_x = (char *)args.d_x + r * c->columns * bytes;
        row.factor =
            dtype == SW_DTYPE_F64 ? ((const double *)c->d_out)[r] : (double)((const float *)c->d_out)[r];
        sw_kernel_cross_entropy_back(kernel, dtype, &row);
    }
}

static const kernel_op ops[] = {
    {"cross-entropy", "M", "RRRR", 1, run_loss, run_loss_back, 1, 0},
};

#include "kernel_ops_test.h"

static void a_loss_has_its_value_and_ignored_rows_none(void **state)
{
    const double x[2][4] = {
        {1, 2, 3, 4  },
        {1, 2, 3, NAN}
    };
    const int32_t targets[2] = {2, -100};
    double loss[2];
    double room[3][2];
    double d_x[2][4];
    sw_kernel *kernel = kernel_of(SW_KERNEL_REFERENCE, 1);
    sw_loss_args args = {.n_rows = 2,
                         .width = 4,
                         .x = x,
                         .targets = targets,
                         .factor = 0.5,
                         .max = room[0],
                         .sum = room[1],
                         .target_x = room[2],
                         .loss = loss,
                         .d_x = d_x};

    (void)state;
    sw_kernel_cross_entropy(kernel, SW_DTYPE_F64, &args);
    sw_kernel_cross_entropy_back(kernel, SW_DTYPE_F64, &args);
    assert_true(fabs(loss[0] - 1.4401896985611953) < 1e-14); /* ln(e^-2 + e^-1 + 1 + e) */
    assert_true(fabs(d_x[0][3] - 0.5 * 0.6439142598879724) < 1e-14);
    assert_true(fabs(d_x[0][2] + 0.5 * (1 - 0.23688281808991013)) < 1e-14);
    assert_true(loss[1] == 0 && d_x[1][0] == 0 && d_x[1][3] == 0);
    sw_kernel_destroy(kernel);
}

/* Three ranks of 5, 4 and 0 columns: maxima and sums reduced between the pieces. */
static void a_cut_vocabulary_gives_what_the_whole_gives(void **state)
{
    enum { ROWS = 6, WIDTH = 9, RANKS = 3 };
    static const size_t begin[RANKS + 1] = {0, 5, 9, 9};
    gen g = {2, 2};
    double x[ROWS * WIDTH];
    double d_x[ROWS * WIDTH];
    double whole[4][ROWS];
    double part_x[RANKS][ROWS * WIDTH];
    double part[RANKS][3][ROWS];
    const int32_t targets[ROWS] = {0, 4, 5, 8, -1, 3};
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_loss_args args = {.n_rows = ROWS,
                         .width = WIDTH,
                         .x = x,
                         .targets = targets,
                         .factor = 0.2,
                         .max = whole[0],
                         .sum = whole[1],
                         .target_x = whole[2],
                         .loss = whole[3],
                         .d_x = d_x};
    sw_loss_args cut[RANKS];

    (void)state;
    gen_fill(&g, SW_DTYPE_F64, x, ROWS * WIDTH);
    sw_kernel_cross_entropy(kernel, SW_DTYPE_F64, &args);
    sw_kernel_cross_entropy_back(kernel, SW_DTYPE_F64, &args);
    for (size_t i = 0; i < RANKS; i++) {
        size_t width = begin[i + 1] - begin[i];
        for (size_t r = 0; r < ROWS; r++)
            memcpy(part_x[i] + r * width, x + r * WIDTH + begin[i], width * sizeof(double));
        cut[i] = args;
        cut[i].width = width;
        cut[i].first = (int64_t)begin[i];
        cut[i].x = cut[i].d_x = part_x[i];
        cut[i].max = part[i][0];
        cut[i].sum = part[i][1];
        cut[i].target_x = part[i][2];
        sw_softmax_args rows = {.n_rows = ROWS, .width = width, .x = part_x[i], .out = part[i][0]};
        sw_kernel_row_max(kernel, SW_DTYPE_F64, &rows);
    }
    for (size_t r = 0; r < ROWS; r++)
        part[0][0][r] = part[1][0][r] = part[2][0][r] =
            fmax(fmax(part[0][0][r], part[1][0][r]), part[2][0][r]);
    for (size_t i = 0; i < RANKS; i++) {
        sw_softmax_args rows = {
            .n_rows = ROWS, .width = cut[i].width, .x = part_x[i], .out = part[i][1], .max = part[i][0]};
        sw_kernel_row_exp_sum(kernel, SW_DTYPE_F64, &rows);
        sw_kernel_target_logits(kernel, SW_DTYPE_F64, &cut[i]);
    }
    double loss[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t s = 1; s < 3; s++)
            part[0][s][r] = part[1][s][r] = part[2][s][r] = part[0][s][r] + part[1][s][r] + part[2][s][r];
    }
    cut[1].loss = loss;
    sw_kernel_loss_of_sums(SW_DTYPE_F64, &cut[1]);
    for (size_t i = 0; i < RANKS; i++) {
        sw_kernel_cross_entropy_back(kernel, SW_DTYPE_F64, &cut[i]);
        for (size_t r = 0; r < ROWS; r++) {
            assert_true(fabs(loss[r] - whole[3][r]) < 1e-13);
            for (size_t c = 0; c < cut[i].width; c++)
                assert_true(fabs(part_x[i][r * cut[i].width + c] - d_x[r * WIDTH + begin[i] + c]) < 1e-14);
        }
    }
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_gives_what_the_reference_gives),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(each_backward_is_the_slope_of_its_forward),
        cmocka_unit_test(a_loss_has_its_value_and_ignored_rows_none),
        cmocka_unit_test(a_cut_vocabulary_gives_what_the_whole_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
