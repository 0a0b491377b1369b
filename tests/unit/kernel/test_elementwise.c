/* Elementwise kernels: variants, threads, slopes, and values that can be said by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/elementwise.h"
#include "kernel_op.h"

static size_t cells(const op_case *c)
{
    return c->rows * c->columns;
}

static void run_add(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_add(kernel, dtype, c->in[0], c->in[1], c->out[0], cells(c));
}

static void run_multiply(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_multiply(kernel, dtype, c->in[0], c->in[1], c->out[0], cells(c));
}

static void run_multiply_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_multiply(kernel, dtype, c->in[1], c->d_out, c->d_in[0], cells(c));
    sw_kernel_multiply(kernel, dtype, c->in[0], c->d_out, c->d_in[1], cells(c));
}

/* out = 2.5 a + (-0.75 b) */
static void run_scale(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_scale(kernel, dtype, 2.5, c->in[0], c->out[0], cells(c));
    sw_kernel_accumulate(kernel, dtype, -0.75, c->in[1], c->out[0], cells(c));
}

static void run_scale_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_scale(kernel, dtype, 2.5, c->d_out, c->d_in[0], cells(c));
    sw_kernel_accumulate(kernel, dtype, -0.75, c->d_out, c->d_in[1], cells(c)); /* on zeros */
}

static void run_cap(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_soft_cap(kernel, dtype, c->flags % 2 == 0 ? 30 : 2, c->in[0], c->out[0], cells(c));
}

static void run_cap_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_soft_cap_back(kernel, dtype, c->flags % 2 == 0 ? 30 : 2, c->in[0], c->d_out, c->d_in[0],
                            cells(c));
}

static void run_clamp(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_clamp(kernel, dtype, c->flags % 2 == 0 ? 0.75 : 2, c->in[0], c->out[0], cells(c));
}

static void run_clamp_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_kernel_clamp_back(kernel, dtype, c->flags % 2 == 0 ? 0.75 : 2, c->in[0], c->d_out, c->d_in[0],
                         cells(c));
}

static void run_activate(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_activation activation = (sw_activation)(c->flags % SW_ACT_COUNT_);
    sw_kernel_activate(kernel, dtype, activation, c->in[0], c->out[0], cells(c));
}

static void run_activate_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_activation activation = (sw_activation)(c->flags % SW_ACT_COUNT_);
    sw_kernel_activate_back(kernel, dtype, activation, c->in[0], c->d_out, c->d_in[0], cells(c));
}

/* Every second case is the clamped unit. */
static sw_glu_args glu_of(const op_case *c)
{
    return (sw_glu_args){
        .n_rows = c->rows,
        .width = c->columns,
        .activation = (sw_activation)(c->flags / 2 % SW_ACT_COUNT_),
        .limit = c->flags % 2 == 0 ? 2 : 0,
        .alpha = 1.702,
        .gate = c->in[0],
        .up = c->in[1],
        .stride = c->columns,
        .out = c->out[0],
        .d_out = c->d_out,
        .d_gate = c->d_in[0],
        .d_up = c->d_in[1],
        .d_stride = c->columns,
    };
}

static void run_glu(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_glu_args args = glu_of(c);
    sw_kernel_glu(kernel, dtype, &args);
}

static void run_glu_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_glu_args args = glu_of(c);
    sw_kernel_glu_back(kernel, dtype, &args);
}

static void run_bias(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rows_args args = {c->rows, c->columns, c->in[1], c->in[0], c->out[0], false};
    sw_kernel_add_bias(kernel, dtype, &args);
}

static void run_bias_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rows_args args = {c->rows, c->columns, c->d_out, NULL, c->d_in[0], c->flags % 2 == 0};
    sw_kernel_column_sum(kernel, dtype, &args); /* on zeros */
}

static void run_row_scale(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rows_args args = {c->rows, c->columns, c->in[1], c->in[0], c->out[0], false};
    sw_kernel_row_scale(kernel, dtype, &args);
}

static void run_row_scale_back(const sw_kernel *kernel, sw_dtype dtype, const op_case *c)
{
    sw_rows_args by_factor = {c->rows, c->columns, c->in[1], c->d_out, c->d_in[0], false};
    sw_rows_args by_row = {c->rows, c->columns, c->d_out, c->in[0], c->d_in[1], c->flags % 2 == 0};
    sw_kernel_row_dot(kernel, dtype, &by_factor);
    sw_kernel_row_scale(kernel, dtype, &by_row);
}

// clang-format off
static const kernel_op ops[] = {
    /* name          in    out  gradients of       */
    { "add",         "MM", "M", 0, run_add,       NULL,               0, 0 },
    { "multiply",    "MM", "M", 2, run_multiply,  run_multiply_back,  0, 0 },
    { "scale",       "MM", "M", 2, run_scale,     run_scale_back,     0, 0 },
    { "soft cap",    "M",  "M", 1, run_cap,       run_cap_back,       0, 0 },
    { "clamp",       "M",  "M", 1, run_clamp,     run_clamp_back,     0, 0 },
    { "activation",  "M",  "M", 1, run_activate,  run_activate_back,  0, 0 },
    { "gated unit",  "MM", "M", 2, run_glu,       run_glu_back,       0, 0 },
    { "bias",        "CM", "M", 1, run_bias,      run_bias_back,      0, 0 },
    { "row scale",   "RM", "M", 2, run_row_scale, run_row_scale_back, 0, 0 },
};
// clang-format on

#include "kernel_ops_test.h"

static void activations_have_their_textbook_values(void **state)
{
    static const double x[] = {-3, -0.5, 0, 1, 2.5};
    static const double expected[SW_ACT_COUNT_][5] = {
        [SW_ACT_SILU] = {-0.14227761953270,      -0.18877033439907,    0,   0.73105857863000,   2.3103545499469},
        [SW_ACT_GELU] = {-0.0040496940948,       -0.15426876936299,    0,   0.84134474606854,   2.4844758366855},
        [SW_ACT_GELU_TANH] = {-0.0036373920817729943, -0.15428599017485606, 0,   0.8411919906082768,
                         2.4849157339100010                                                                    },
        [SW_ACT_RELU] = {0,                      0,                    0,   1,                  2.5            },
        [SW_ACT_SIGMOID] = {0.04742587317756678,    0.3775406687981454,   0.5, 0.7310585786300049,
                         0.9241418199787566                                                                    },
    };
    double out[5];
    sw_kernel *kernel = kernel_of(SW_KERNEL_REFERENCE, 1);

    (void)state;
    for (size_t a = 0; a < SW_ACT_COUNT_; a++) {
        sw_kernel_activate(kernel, SW_DTYPE_F64, (sw_activation)a, x, out, 5);
        for (size_t i = 0; i < 5; i++)
            assert_true(fabs(out[i] - expected[a][i]) < 1e-10);
    }
    sw_kernel_destroy(kernel);
}

/* At infinities the limits, NaN for NaN, in every variant. */
static void activations_have_limits_and_keep_nan(void **state)
{
    const float x[] = {INFINITY, 1e30F, 1e4F, -1e4F, -1e30F, NAN};
    float out[6];

    (void)state;
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        for (size_t a = 0; a < SW_ACT_SIGMOID; a++) {
            sw_kernel_activate(kernel, SW_DTYPE_F32, (sw_activation)a, x, out, 6);
            assert_true(isinf(out[0]) && out[0] > 0);
            assert_true(out[1] == 1e30F && out[2] == 1e4F);
            assert_true(out[3] == 0 && out[4] == 0);
            assert_true(isnan(out[5]));
        }
        const float ones[6] = {1, 1, 1, 1, 1, 1};
        sw_kernel_activate_back(kernel, SW_DTYPE_F32, SW_ACT_GELU, x + 1, ones, out, 5);
        assert_true(out[0] == 1 && out[1] == 1 && out[2] == 0 && out[3] == 0 && isnan(out[4]));
        sw_kernel_soft_cap(kernel, SW_DTYPE_F32, 30, x, out, 6);
        assert_true(out[0] == 30 && out[4] == -30 && isnan(out[5]));
        sw_kernel_destroy(kernel);
    }
}

static void expect_near_erf(double x, double value, double slope)
{
    double phi = exp(-0.5 * x * x) * 0.3989422804014327;
    double below = 0.5 * erfc(-x * sqrt(0.5));
    double error = fabs(value - x * below);

    if (x > 0)
        assert_true(error <= 4 * ldexp(1, ilogb(x * below) - 23));
    else
        assert_true(error <= -1.2e-7 * x && error <= -1e-3 * x * below);
    assert_true(fabs(slope - (below + x * phi)) <= 2.4e-7);
}

/*
 * Above 0 within 4 units in the last place; below, where 1 + erf cancels, 1.2e-7 of x and 1e-3 of the value;
 * slopes within 2 units of 1.
 */
static void gelu_is_as_near_to_erf_as_floats_allow(void **state)
{
    enum { N = 120000 };
    float *x = malloc(N * sizeof *x);
    float *out = malloc(N * sizeof *out);
    float *slope = malloc(N * sizeof *slope);
    float *ones = malloc(N * sizeof *ones);

    (void)state;
    assert_true(x != NULL && out != NULL && slope != NULL && ones != NULL);
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)(-6 + (double)i * 1e-4);
        ones[i] = 1;
    }
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        sw_kernel_activate(kernel, SW_DTYPE_F32, SW_ACT_GELU, x, out, N);
        sw_kernel_activate_back(kernel, SW_DTYPE_F32, SW_ACT_GELU, x, ones, slope, N);
        for (size_t i = 0; i < N; i++)
            expect_near_erf((double)x[i], (double)out[i], (double)slope[i]);
        sw_kernel_destroy(kernel);
    }
    free(ones);
    free(slope);
    free(out);
    free(x);
}

/* gpt-oss: beyond the limit the unit is flat. */
static void the_clamped_unit_is_flat_beyond_its_limit(void **state)
{
    const float gate[] = {8, 7, -9, 1};
    const float up[] = {0, 9, -9, 0.5F};
    const float d_out[] = {1, 1, 1, 1};
    float out[4];
    float d_gate[4];
    float d_up[4];
    sw_glu_args args = {.n_rows = 1,
                        .width = 4,
                        .limit = 7,
                        .alpha = 1.702,
                        .gate = gate,
                        .up = up,
                        .stride = 4,
                        .out = out,
                        .d_out = d_out,
                        .d_gate = d_gate,
                        .d_up = d_up,
                        .d_stride = 4};

    (void)state;
    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        sw_kernel *kernel = kernel_of(v, 1);
        sw_kernel_glu(kernel, SW_DTYPE_F32, &args);
        sw_kernel_glu_back(kernel, SW_DTYPE_F32, &args);
        assert_true(fabsf(out[0] - 6.99995F) < 1e-4F); /* 7 * sigmoid(11.914) */
        assert_true(fabsf(out[1] - 8 * 6.99995F) < 1e-3F);
        assert_true(d_gate[0] == 0 && d_gate[1] != 0 && d_up[0] != 0);
        assert_true(d_up[1] == 0 && d_up[2] == 0 && d_up[3] != 0);
        sw_kernel_destroy(kernel);
    }
}

/* Halves of one matrix, and gradients written over them. */
static void a_gated_unit_reads_and_writes_halves_of_one_matrix(void **state)
{
    enum { ROWS = 3, WIDTH = 37 };
    gen g = {1, 1};
    float both[ROWS * 2 * WIDTH];
    float parts[2][ROWS * WIDTH];
    float d_parts[2][ROWS * WIDTH];
    float d_out[ROWS * WIDTH];
    float out[2][ROWS * WIDTH];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    gen_fill(&g, SW_DTYPE_F32, both, ROWS * 2 * WIDTH);
    gen_fill(&g, SW_DTYPE_F32, d_out, ROWS * WIDTH);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(parts[0] + r * WIDTH, both + r * 2 * WIDTH, WIDTH * sizeof(float));
        memcpy(parts[1] + r * WIDTH, both + (r * 2 + 1) * WIDTH, WIDTH * sizeof(float));
    }
    sw_glu_args apart = {.n_rows = ROWS,
                         .width = WIDTH,
                         .gate = parts[0],
                         .up = parts[1],
                         .stride = WIDTH,
                         .out = out[0],
                         .d_out = d_out,
                         .d_gate = d_parts[0],
                         .d_up = d_parts[1],
                         .d_stride = WIDTH};
    sw_glu_args fused = {.n_rows = ROWS,
                         .width = WIDTH,
                         .gate = both,
                         .up = both + WIDTH,
                         .stride = 2 * WIDTH,
                         .out = out[1],
                         .d_out = d_out,
                         .d_gate = both,
                         .d_up = both + WIDTH,
                         .d_stride = 2 * WIDTH};
    sw_kernel_glu(kernel, SW_DTYPE_F32, &apart);
    sw_kernel_glu(kernel, SW_DTYPE_F32, &fused);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    sw_kernel_glu_back(kernel, SW_DTYPE_F32, &apart);
    sw_kernel_glu_back(kernel, SW_DTYPE_F32, &fused);
    for (size_t r = 0; r < ROWS; r++) {
        assert_memory_equal(d_parts[0] + r * WIDTH, both + r * 2 * WIDTH, WIDTH * sizeof(float));
        assert_memory_equal(d_parts[1] + r * WIDTH, both + (r * 2 + 1) * WIDTH, WIDTH * sizeof(float));
    }
    sw_kernel_destroy(kernel);
}

/* 100,003 values: more than the blocks of a sum, against one plain loop. */
static void sums_have_one_order_for_any_number_of_threads(void **state)
{
    enum { N = 1100003 };
    float *x = malloc(N * sizeof *x);
    gen g = {7, 7};
    double sum = 0;
    double squares = 0;

    (void)state;
    assert_non_null(x);
    gen_fill(&g, SW_DTYPE_F32, x, N);
    for (size_t i = 0; i < N; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    sw_kernel *one = kernel_of(SW_KERNEL_BEST, 1);
    double first = sw_kernel_sum(one, SW_DTYPE_F32, x, N);
    assert_true(fabs(first - sum) < 1e-6);
    assert_true(fabs(sw_kernel_square_sum(one, SW_DTYPE_F32, x, N) / squares - 1) < 1e-12);
    for (uint32_t n = 2; n <= 3; n++) {
        sw_kernel *many = kernel_of(SW_KERNEL_BEST, n);
        assert_true(sw_kernel_sum(many, SW_DTYPE_F32, x, N) == first);
        sw_kernel_destroy(many);
    }
    assert_true(sw_kernel_sum(one, SW_DTYPE_F64, NULL, 0) == 0);
    sw_kernel_destroy(one);
    free(x);
}

/* Slopes that are written past the caches, and the same ones in pieces that are not. */
static void a_long_result_has_the_bits_of_short_ones(void **state)
{
    enum { WIDTH = 2048, ROWS = 2049, PIECE = 683, N = WIDTH * ROWS };
    float *x = malloc((size_t)N * sizeof *x);
    float *whole[2] = {malloc((size_t)N * sizeof *x), malloc((size_t)N * sizeof *x)};
    float *pieces[2] = {malloc((size_t)N * sizeof *x), malloc((size_t)N * sizeof *x)};
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 2);
    sw_glu_args args = {.n_rows = ROWS, .width = WIDTH, .stride = WIDTH, .d_stride = WIDTH};

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = (float)(i % 1021) / 255 - 2;
    args.gate = args.up = args.d_out = x;
    args.d_gate = whole[0];
    args.d_up = whole[1];
    sw_kernel_glu_back(kernel, SW_DTYPE_F32, &args);
    args.n_rows = PIECE;
    for (size_t r = 0; r < ROWS; r += PIECE) {
        args.gate = args.up = args.d_out = x + r * WIDTH;
        args.d_gate = pieces[0] + r * WIDTH;
        args.d_up = pieces[1] + r * WIDTH;
        sw_kernel_glu_back(kernel, SW_DTYPE_F32, &args);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(whole[i], pieces[i], (size_t)N * sizeof *x);
        free(whole[i]);
        free(pieces[i]);
    }
    free(x);
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_gives_what_the_reference_gives),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(each_backward_is_the_slope_of_its_forward),
        cmocka_unit_test(activations_have_their_textbook_values),
        cmocka_unit_test(activations_have_limits_and_keep_nan),
        cmocka_unit_test(gelu_is_as_near_to_erf_as_floats_allow),
        cmocka_unit_test(the_clamped_unit_is_flat_beyond_its_limit),
        cmocka_unit_test(a_gated_unit_reads_and_writes_halves_of_one_matrix),
        cmocka_unit_test(a_long_result_has_the_bits_of_short_ones),
        cmocka_unit_test(sums_have_one_order_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
