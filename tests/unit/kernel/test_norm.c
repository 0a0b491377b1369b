/* Norms, softmax, sums of rows and rotary embedding: variants, threads, slopes, pieces. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/norm.h"
#include "kernel/rotary.h"
#include "kernel/softmax.h"
#include "kernel_op.h"

/* Flags choose the convention of the weight; inputs: x, weight, bias. Outputs: y, scale, mean, dot. */
static sw_norm_args norm_of(const op_case *c)
{
    return (sw_norm_args){
        .n_rows = c->rows,
        .width = c->columns,
        .eps = 1e-5,
        .offset = c->flags % 2,
        .x = c->in[0],
        .weight = c->in[1],
        .bias = c->in[2],
        .y = c->out[0],
        .scale = c->out[1],
        .mean = c->out[2],
        .dot = c->out[3],
        .d_y = c->d_out,
        .d_x = c->d_in[0],
        .d_weight = c->d_in[1],
        .d_bias = c->d_in[2],
    };
}

static void run_rms(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_norm_args args = norm_of(c);
    args.dot = c->out[2];
    sw_kernel_rms_norm(kernel, dtype, &args);
}

typedef void norm_back(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);

/* With the room that the kernel says it needs, and a guard behind. */
static void run_in_room(norm_back *back, const sw_kernel *kernel, sw_dtype dtype, sw_norm_args args)
{
    size_t n = sw_kernel_norm_parts_bytes(dtype, &args) / (dtype == SW_DTYPE_F64 ? 8 : 4);

    args.parts = n == 0 ? NULL : guarded_alloc(dtype, n);
    back(kernel, dtype, &args);
    assert_true(guarded_free(args.parts, dtype, n));
}

static void run_rms_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_norm_args args = norm_of(c);
    args.dot = c->out[2];
    run_in_room(sw_kernel_rms_norm_back, kernel, dtype, args);
}

static void run_rms_plain(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_norm_args args = norm_of(c);
    args.weight = NULL;
    args.offset = 0;
    sw_kernel_rms_norm(kernel, dtype, &args);
}

static void run_layer(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_norm_args args = norm_of(c);
    args.offset = 0;
    sw_kernel_layer_norm(kernel, dtype, &args);
}

static void run_layer_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_norm_args args = norm_of(c);
    args.offset = 0;
    run_in_room(sw_kernel_layer_norm_back, kernel, dtype, args);
}

static void run_softmax(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_softmax_args args = {.n_rows = c->rows, .width = c->columns, .x = c->in[0], .out = c->out[0]};
    sw_softmax_args max = {.n_rows = c->rows, .width = c->columns, .x = c->in[0], .out = c->out[1]};
    sw_softmax_args sum = {
        .n_rows = c->rows, .width = c->columns, .x = c->in[0], .out = c->out[2], .max = c->out[1]};
    sw_kernel_softmax(kernel, dtype, &args);
    sw_kernel_row_max(kernel, dtype, &max);
    sw_kernel_row_exp_sum(kernel, dtype, &sum);
}

static void run_softmax_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_softmax_args args = {
        .n_rows = c->rows, .width = c->columns, .y = c->out[0], .d_y = c->d_out, .out = c->d_in[0]};
    sw_kernel_softmax_back(kernel, dtype, &args);
}

/* With what is added sums are far from 0, whatever the signs. */
static sw_softmax_args normalise_of(const op_case *c)
{
    return (sw_softmax_args){.n_rows = c->rows,
                             .width = c->columns,
                             .eps = 40 * (double)c->columns,
                             .x = c->in[0],
                             .y = c->out[0],
                             .d_y = c->d_out,
                             .sum = c->out[1]};
}

static void run_normalise(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_softmax_args args = normalise_of(c);
    args.out = c->out[0];
    sw_kernel_normalise(kernel, dtype, &args);
}

static void run_normalise_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_softmax_args args = normalise_of(c);
    args.out = c->d_in[0];
    sw_kernel_normalise_back(kernel, dtype, &args);
}

/* One or two heads of all columns, the part that turns by the flags; tables [rows, columns / 2] hold enough.
 */
static sw_rotary_args rotary_of(const op_case *c)
{
    size_t n_heads = c->flags % 2 + 1;
    size_t width = c->columns / n_heads;

    return (sw_rotary_args){
        .n_tokens = c->rows,
        .n_heads = n_heads,
        .width = width,
        .rotated = c->flags % 3 == 0 ? width / 4 * 2 : width / 2 * 2,
        .is_interleaved = c->flags % 5 < 2,
        .cos = c->in[1],
        .sin = c->in[2],
        .x_stride = c->columns,
        .y_stride = c->columns,
    };
}

static void run_rotary(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rotary_args args = rotary_of(c);
    args.x = c->in[0];
    args.y = c->out[0];
    sw_kernel_rotary(kernel, dtype, &args);
}

static void run_rotary_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rotary_args args = rotary_of(c);
    args.x = c->d_out;
    args.y = c->d_in[0];
    args.is_back = true;
    sw_kernel_rotary(kernel, dtype, &args);
}

// clang-format off
static const kernel_op ops[] = {
    /* name                    in     out     gradients of */
    { "rms norm",              "MC",  "MRR",  2, run_rms,       run_rms_back,     4, 0 },
    { "rms norm, no weight",   "M",   "MR",   0, run_rms_plain, NULL,             0, 0 },
    { "layer norm",            "MCC", "MRRR", 3, run_layer,     run_layer_back,   4, 0 },
    { "layer norm, no weight", "M",   "MRRR", 1, run_layer,     run_layer_back,   4, 0 },
    { "softmax",               "M",   "MRR",  1, run_softmax,   run_softmax_back, 0, 0 },
    { "normalise",             "M",   "MR",   1, run_normalise, run_normalise_back, 0, 0 },
    { "rotary",                "MTT", "M",    1, run_rotary,    run_rotary_back,  0, 4 },
};
// clang-format on

#include "kernel_ops_test.h"

/* Row r of x is r + 1 wherever it stands, of d_y 1: sums of whole numbers, exact in every order. */
static void weight_gradients_of_many_rows_are_added_from_all_parts(void **state)
{
    enum { ROWS = 2100, WIDTH = 37 };
    static float x[ROWS * WIDTH];
    static float d_y[ROWS * WIDTH];
    static float d_x[ROWS * WIDTH];
    static float mean[ROWS];
    static float scale[ROWS];
    static float dot[ROWS];

    (void)state;
    for (size_t i = 0; i < (size_t)ROWS * WIDTH; i++) {
        x[i] = (float)(i / WIDTH + 1);
        d_y[i] = 1;
    }
    for (size_t r = 0; r < ROWS; r++)
        scale[r] = 1;
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        static const size_t row_counts[] = {127, 128, 129, 1000, ROWS};
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 3);
        for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
            size_t n = row_counts[i];
            float d_weight[WIDTH] = {5};
            float d_bias[WIDTH] = {7};
            sw_norm_args args = {.n_rows = n,
                                 .width = WIDTH,
                                 .x = x,
                                 .mean = mean,
                                 .scale = scale,
                                 .d_y = d_y,
                                 .d_x = d_x,
                                 .dot = dot,
                                 .d_weight = d_weight};
            float sum = (float)(n * (n + 1) / 2);
            run_in_room(sw_kernel_rms_norm_back, kernel, SW_DTYPE_F32, args);
            assert_true(d_weight[0] == sum + 5 && d_weight[WIDTH - 1] == sum);
            run_in_room(sw_kernel_rms_weight_back, kernel, SW_DTYPE_F32, args);
            assert_true(d_weight[0] == 2 * sum + 5 && d_weight[WIDTH - 1] == 2 * sum);
            args.d_weight = NULL;
            args.d_bias = d_bias;
            run_in_room(sw_kernel_layer_norm_back, kernel, SW_DTYPE_F32, args);
            assert_true(d_bias[0] == (float)n + 7 && d_bias[WIDTH - 1] == (float)n);
        }
        sw_kernel_destroy(kernel);
    }
}

/* Two halves of each row as on two ranks: their sums of squares and dots are added between the pieces. */
static void a_row_in_two_pieces_gives_what_the_whole_gives(void **state)
{
    enum { ROWS = 5, WIDTH = 34, HALF = WIDTH / 2 };
    gen g = {3, 3};
    double x[ROWS * WIDTH];
    double weight[WIDTH];
    double d_y[ROWS * WIDTH];
    double y[ROWS * WIDTH];
    double d_x[ROWS * WIDTH];
    double scale[ROWS];
    double dot[ROWS];
    double parts[4][2][ROWS * HALF]; /* x, y, d_y, d_x */
    double sums[2][2][ROWS];         /* scale, dot */
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_norm_args whole = {.n_rows = ROWS,
                          .width = WIDTH,
                          .eps = 1e-5,
                          .offset = 1,
                          .x = x,
                          .weight = weight,
                          .y = y,
                          .scale = scale,
                          .d_y = d_y,
                          .d_x = d_x,
                          .dot = dot};
    sw_norm_args half[2];

    (void)state;
    gen_fill(&g, SW_DTYPE_F64, x, ROWS * WIDTH);
    gen_fill(&g, SW_DTYPE_F64, weight, WIDTH);
    gen_fill(&g, SW_DTYPE_F64, d_y, ROWS * WIDTH);
    sw_kernel_rms_norm(kernel, SW_DTYPE_F64, &whole);
    sw_kernel_rms_norm_back(kernel, SW_DTYPE_F64, &whole);
    for (size_t p = 0; p < 2; p++) {
        for (size_t r = 0; r < ROWS; r++) {
            memcpy(parts[0][p] + r * HALF, x + r * WIDTH + p * HALF, HALF * sizeof(double));
            memcpy(parts[2][p] + r * HALF, d_y + r * WIDTH + p * HALF, HALF * sizeof(double));
        }
        half[p] = (sw_norm_args){.n_rows = ROWS,
                                 .width = HALF,
                                 .full_width = WIDTH,
                                 .eps = 1e-5,
                                 .offset = 1,
                                 .x = parts[0][p],
                                 .weight = weight + p * HALF,
                                 .y = parts[1][p],
                                 .scale = sums[0][p],
                                 .d_y = parts[2][p],
                                 .d_x = parts[3][p],
                                 .dot = sums[1][p]};
        sw_kernel_rms_square_sums(kernel, SW_DTYPE_F64, &half[p]);
    }
    for (size_t r = 0; r < ROWS; r++)
        sums[0][0][r] = sums[0][1][r] = sums[0][0][r] + sums[0][1][r];
    for (size_t p = 0; p < 2; p++) {
        sw_kernel_rms_scales(SW_DTYPE_F64, &half[p]);
        sw_kernel_rms_apply(kernel, SW_DTYPE_F64, &half[p]);
        sw_kernel_rms_dots(kernel, SW_DTYPE_F64, &half[p]);
    }
    for (size_t r = 0; r < ROWS; r++)
        sums[1][0][r] = sums[1][1][r] = sums[1][0][r] + sums[1][1][r];
    for (size_t p = 0; p < 2; p++) {
        sw_kernel_rms_apply_back(kernel, SW_DTYPE_F64, &half[p]);
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t c = 0; c < HALF; c++) {
                size_t at = r * WIDTH + p * HALF + c;
                assert_true(fabs(parts[1][p][r * HALF + c] - y[at]) < 1e-12);
                assert_true(fabs(parts[3][p][r * HALF + c] - d_x[at]) < 1e-12);
            }
        }
    }
    sw_kernel_destroy(kernel);
}

/* A result that is written past the caches, and the same one in pieces that are not. */
static void a_long_result_has_the_bits_of_short_ones(void **state)
{
    enum { WIDTH = 2048, ROWS = 2049, PIECE = 683, N = WIDTH * ROWS, GAP = 3 /* out of line */ };
    static norm_back *const norms[] = {sw_kernel_layer_norm, sw_kernel_rms_norm, sw_kernel_layer_norm_back,
                                       sw_kernel_rms_norm_back};
    float *x = malloc((size_t)N * sizeof *x);
    float *whole = malloc((size_t)(N + GAP) * sizeof *whole);
    float *pieces = malloc((size_t)N * sizeof *pieces);
    static float rows[3][ROWS]; /* mean, scale, dot */

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = (float)(i % 1021) / 1021 - 0.3F;
    for (size_t f = 0; f < sizeof norms / sizeof *norms; f++) {
        sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 2);
        sw_norm_args args = {.n_rows = ROWS, .width = WIDTH, .eps = 1e-5, .x = x, .d_y = x};
        args.mean = rows[0];
        args.scale = rows[1];
        args.dot = rows[2];
        args.y = args.d_x = whole + f % 2 * GAP;
        norms[f](kernel, SW_DTYPE_F32, &args);
        for (size_t r = 0; r < ROWS; r += PIECE) {
            sw_norm_args piece = args;
            piece.n_rows = PIECE;
            piece.x = piece.d_y = x + r * WIDTH;
            piece.y = piece.d_x = pieces + r * WIDTH;
            piece.mean = rows[0] + r;
            piece.scale = rows[1] + r;
            norms[f](kernel, SW_DTYPE_F32, &piece);
        }
        assert_memory_equal(args.y, pieces, (size_t)N * sizeof *x);
        sw_kernel_destroy(kernel);
    }
    free(x);
    free(whole);
    free(pieces);
}

static void a_norm_has_mean_square_one_whatever_its_weight_is_called(void **state)
{
    enum { WIDTH = 50 };
    gen g = {4, 4};
    double x[WIDTH];
    double zero[WIDTH] = {0};
    double y[WIDTH];
    double scale;
    double sum = 0;
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_norm_args args = {
        .n_rows = 1, .width = WIDTH, .offset = 1, .x = x, .weight = zero, .y = y, .scale = &scale};

    (void)state;
    gen_fill(&g, SW_DTYPE_F64, x, WIDTH);
    sw_kernel_rms_norm(kernel, SW_DTYPE_F64, &args);
    for (size_t i = 0; i < WIDTH; i++)
        sum += y[i] * y[i];
    assert_true(fabs(sum / WIDTH - 1) < 1e-12);
    sw_kernel_destroy(kernel);
}

/* Masked entries get nothing; a row with nothing left gives zeros; infinite and undefined scores are seen. */
static void softmax_of_masked_rows(void **state)
{
    const float x[3][3] = {
        {-INFINITY, 2,         2        },
        {-INFINITY, -INFINITY, -INFINITY},
        {1,         NAN,       2        }
    };
    float y[3][3];

    (void)state;
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        sw_softmax_args args = {.n_rows = 3, .width = 3, .x = x, .out = y};
        sw_kernel_softmax(kernel, SW_DTYPE_F32, &args);
        assert_true(y[0][0] == 0 && y[0][1] == 0.5F && y[0][2] == 0.5F);
        assert_true(y[1][0] == 0 && y[1][1] == 0 && y[1][2] == 0);
        assert_true(isnan(y[2][0]) && isnan(y[2][1]) && isnan(y[2][2]));
        sw_kernel_destroy(kernel);
    }
}

/* A quarter turn: (x0, x1) becomes (-x1, x0); positions choose the row of the table. */
static void a_quarter_turn_swaps_the_pair(void **state)
{
    const float cosines[2][2] = {
        {1, 1},
        {0, 0}
    };
    const float sines[2][2] = {
        {0, 0},
        {1, 1}
    };
    const int32_t positions[2] = {1, 0};
    const float x[2][5] = {
        {1, 2, 3, 4, 9},
        {1, 2, 3, 4, 9}
    };
    const float expected[2][2][5] = {
        {{-3, -4, 1, 2, 9}, {1, 2, 3, 4, 9}},
        {{-2, 1, -4, 3, 9}, {1, 2, 3, 4, 9}},
    };
    float y[2][5];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        sw_rotary_args args = {.n_tokens = 2,
                               .n_heads = 1,
                               .width = 5,
                               .rotated = 4,
                               .is_interleaved = i == 1,
                               .cos = cosines,
                               .sin = sines,
                               .positions = positions,
                               .x = x,
                               .y = y,
                               .x_stride = 5,
                               .y_stride = 5};
        sw_kernel_rotary(kernel, SW_DTYPE_F32, &args);
        assert_memory_equal(y, expected[i], sizeof y);
        args.x = y;
        args.is_back = true;
        sw_kernel_rotary(kernel, SW_DTYPE_F32, &args);
        assert_memory_equal(y, x, sizeof y);
    }
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_gives_what_the_reference_gives),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(each_backward_is_the_slope_of_its_forward),
        cmocka_unit_test(weight_gradients_of_many_rows_are_added_from_all_parts),
        cmocka_unit_test(a_row_in_two_pieces_gives_what_the_whole_gives),
        cmocka_unit_test(a_long_result_has_the_bits_of_short_ones),
        cmocka_unit_test(a_norm_has_mean_square_one_whatever_its_weight_is_called),
        cmocka_unit_test(softmax_of_masked_rows),
        cmocka_unit_test(a_quarter_turn_swaps_the_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
