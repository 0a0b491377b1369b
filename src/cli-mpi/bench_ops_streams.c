/* Loops that memory bounds: norms, rotary embedding, activations, optimizer, beside a copy of as many bytes.
 */
#include "cli-mpi/bench_ops.h"

#include <string.h>

#include "base/status.h"
#include "kernel/convert.h"
#include "kernel/elementwise.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/probe.h"
#include "kernel/rotary.h"
#include "kernel/softmax.h"

enum { ROWS = 4096, WIDTH = 2048, CELLS = ROWS * WIDTH, HEAD = 64 };

typedef void norm_fn(const sw_kernel *kernel, sw_dtype dtype, const sw_norm_args *args);

/* A row of the table; what a field after `bar` says is for the functions that read it. */
typedef struct stream {
    const char *name;
    void (*run)(const sw_ops_bed *bed, const struct stream *stream);
    size_t n_bytes; /* of one cell, read and written */
    double bar;
    norm_fn *norm;
    bool has_weight_gradients;
    sw_activation activation;
    bool is_back;
    bool is_interleaved;
} stream;

/* A matrix of ROWS x WIDTH in the pool, and a vector in the workspace. */
static float *matrix(const sw_ops_bed *bed, size_t i)
{
    return (float *)(void *)bed->pool + i * CELLS;
}

static float *vector(const sw_ops_bed *bed, size_t i)
{
    return (float *)(void *)bed->workspace + i * (1 << 20);
}

static void run_norm(const sw_ops_bed *bed, const stream *s)
{
    sw_norm_args args = {.n_rows = ROWS,
                         .width = WIDTH,
                         .eps = 1e-5,
                         .x = matrix(bed, 0),
                         .weight = vector(bed, 0),
                         .bias = vector(bed, 1),
                         .y = matrix(bed, 1),
                         .mean = vector(bed, 2),
                         .scale = vector(bed, 3),
                         .d_y = matrix(bed, 1),
                         .d_x = matrix(bed, 2),
                         .dot = vector(bed, 4),
                         .d_weight = s->has_weight_gradients ? vector(bed, 5) : NULL,
                         .d_bias = s->has_weight_gradients ? vector(bed, 6) : NULL,
                         .parts = matrix(bed, 3)};
    s->norm(bed->kernel, SW_DTYPE_F32, &args);
}

static void run_softmax(const sw_ops_bed *bed, const stream *s)
{
    (void)s;
    sw_softmax_args args = {.n_rows = ROWS, .width = WIDTH, .x = matrix(bed, 0), .out = matrix(bed, 1)};
    sw_kernel_softmax(bed->kernel, SW_DTYPE_F32, &args);
}

static void run_rotary(const sw_ops_bed *bed, const stream *s)
{
    sw_rotary_args args = {.n_tokens = ROWS,
                           .n_heads = WIDTH / HEAD,
                           .width = HEAD,
                           .rotated = HEAD,
                           .is_interleaved = s->is_interleaved,
                           .cos = matrix(bed, 2),
                           .sin = matrix(bed, 3),
                           .x = matrix(bed, 0),
                           .y = matrix(bed, 1),
                           .x_stride = WIDTH,
                           .y_stride = WIDTH};
    sw_kernel_rotary(bed->kernel, SW_DTYPE_F32, &args);
}

static void run_activation(const sw_ops_bed *bed, const stream *s)
{
    const float *x = matrix(bed, 0);

    if (s->is_back)
        sw_kernel_activate_back(bed->kernel, SW_DTYPE_F32, s->activation, x, matrix(bed, 1), matrix(bed, 2),
                                CELLS);
    else
        sw_kernel_activate(bed->kernel, SW_DTYPE_F32, s->activation, x, matrix(bed, 1), CELLS);
}

static void run_glu(const sw_ops_bed *bed, const stream *s)
{
    sw_glu_args args = {.n_rows = ROWS,
                        .width = WIDTH,
                        .activation = s->activation,
                        .gate = matrix(bed, 0),
                        .up = matrix(bed, 1),
                        .stride = WIDTH,
                        .out = matrix(bed, 2),
                        .d_out = matrix(bed, 2),
                        .d_gate = matrix(bed, 3),
                        .d_up = matrix(bed, 4),
                        .d_stride = WIDTH};
    (s->is_back ? sw_kernel_glu_back : sw_kernel_glu)(bed->kernel, SW_DTYPE_F32, &args);
}

static void run_to_bf16(const sw_ops_bed *bed, const stream *s)
{
    (void)s;
    sw_kernel_to_bf16(bed->kernel, matrix(bed, 0), (uint16_t *)(void *)matrix(bed, 1), CELLS);
}

static void run_adamw(const sw_ops_bed *bed, const stream *s)
{
    (void)s;
    sw_optimizer_args args = {.n = CELLS,
                              .param = matrix(bed, 0),
                              .grad = matrix(bed, 1),
                              .m = matrix(bed, 2),
                              .v = matrix(bed, 3),
                              .step = 5,
                              .lr = 1e-3,
                              .decay = 0.1,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .eps = 1e-8,
                              .clip = 1};
    sw_kernel_adamw(bed->kernel, SW_DTYPE_F32, &args);
}

static const char section[] = "row kernel to copy";

// clang-format off
static const stream streams[] = {
    { "rms norm",           run_norm,       8,  .bar = 0.7, .norm = sw_kernel_rms_norm },
    { "rms norm back, d_x", run_norm,       12, .bar = 0.7, .norm = sw_kernel_rms_norm_back },
    { "rms norm back, d_w", run_norm,       8,  .bar = 0.7, .norm = sw_kernel_rms_weight_back, .has_weight_gradients = true },
    { "layer norm",         run_norm,       8,  .bar = 0.7, .norm = sw_kernel_layer_norm },
    { "layer norm back",    run_norm,       20, .bar = 0.7, .norm = sw_kernel_layer_norm_back, .has_weight_gradients = true },
    { "softmax",            run_softmax,    8,  .bar = 0 },
    { "rotary",             run_rotary,     8,  .bar = 0.7 },
    { "rotary interleaved", run_rotary,     8,  .bar = 0.7, .is_interleaved = true },
    { "silu",               run_activation, 8,  .bar = 0.7, .activation = SW_ACT_SILU },
    { "gelu",               run_activation, 8,  .bar = 0.7, .activation = SW_ACT_GELU },
    { "gelu back",          run_activation, 12, .bar = 0.7, .activation = SW_ACT_GELU, .is_back = true },
    { "gelu tanh back",     run_activation, 12, .bar = 0.7, .activation = SW_ACT_GELU_TANH, .is_back = true },
    { "swiglu",             run_glu,        12, .bar = 0.7, .activation = SW_ACT_SILU },
    { "swiglu back",        run_glu,        20, .bar = 0.7, .activation = SW_ACT_SILU, .is_back = true },
    { "to bf16",            run_to_bf16,    6,  .bar = 0.7 },
    { "adamw",              run_adamw,      28, .bar = 0.7 },
};
// clang-format on

static void run_stream(const sw_ops_bed *bed, const void *what)
{
    const stream *s = what;
    s->run(bed, s);
}

static void copy_matrix(const sw_ops_bed *bed, const void *what)
{
    (void)what;
    sw_probe_copy(bed->kernel, matrix(bed, 6), matrix(bed, 5), (size_t)CELLS * sizeof(float));
}

sw_status sw_ops_streams(const sw_ops_bed *bed, sw_error *err)
{
    for (size_t i = 0; i < SW_COUNT(streams); i++) {
        const stream *s = &streams[i];
        if (!sw_bench_is_wanted(bed->limits->only, section, s->name))
            continue;
        memset(matrix(bed, 3), 0, (size_t)CELLS * sizeof(float)); /* second moments are not negative */
        sw_ops_race race = {.section = section,
                            .name = s->name,
                            .unit = "GB/s",
                            .bar = s->bar,
                            .ours = run_stream,
                            .ours_what = s,
                            .ours_amount = 1e-9 * CELLS * (double)s->n_bytes,
                            .bare = copy_matrix,
                            .bare_amount = 1e-9 * CELLS * 2 * sizeof(float)};
        SW_TRY(sw_ops_measure(bed, &race, err));
    }
    return SW_OK;
}
