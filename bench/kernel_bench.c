/*
 * Speed of the kernels against what the machine can do, measured in the same run:
 *
 *     kernel_bench [--threads N] [--rounds N] [--only TEXT] [--strict]
 *
 * Matrix products against oneDNN called directly and against a loop of multiply-adds in registers; one-row
 * products against a plain read of the same weights; norms, rotary embedding, activations and optimizer
 * against a copy of as many bytes; attention against the library's product. In every round the probe and the
 * kernel take turns; the ratio is that of their best times, for other programs only ever add to one. Threads
 * are pinned, a core each. --strict: a missed bar is exit status 1.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernel/attention.h"
#include "kernel/convert.h"
#include "kernel/elementwise.h"
#include "kernel/loss.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/product.h"
#include "kernel/rotary.h"
#include "kernel/softmax.h"
#include "kernel_probe.h"

enum { POOL_BYTES = 256 << 20 };

typedef struct setting {
    uint32_t n_threads;
    uint32_t n_rounds;
    const char *only;
    bool is_strict;
    bool missed;
    sw_kernel *kernel;
    char *pool; /* weights and activations, touched before anything is timed */
    char *workspace;
} setting;

typedef void work_fn(const setting *s, const void *what);

static double now(const setting *s)
{
    struct timespec t;

    (void)clock_gettime(s->n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Best seconds of two works that take turns. */
typedef struct times {
    double ours;
    double probe;
} times;

static double timed(work_fn *work, const setting *s, const void *what)
{
    double begin = now(s);

    work(s, what);
    return now(s) - begin;
}

static times race(const setting *s, work_fn *ours, const void *what, work_fn *probe, const void *other)
{
    times best = {1e9, 1e9};

    ours(s, what); /* warm: pages, primitives */
    probe(s, other);
    for (uint32_t i = 0; i < s->n_rounds; i++) {
        double a = timed(probe, s, other);
        double b = timed(ours, s, what);
        best.probe = a < best.probe ? a : best.probe;
        best.ours = b < best.ours ? b : best.ours;
    }
    return best;
}

static void report(setting *s, const char *name, double rate, const char *unit, const char *against,
                   double ratio, double bar)
{
    bool is_met = bar == 0 || ratio >= bar;

    printf("%-44s %8.1f %-8s %5.2f x %-22s", name, rate, unit, ratio, against);
    if (bar != 0)
        printf(" bar %.2f %s", bar, is_met ? "met" : "MISSED");
    printf("\n");
    s->missed = s->missed || !is_met;
}

static bool is_wanted(const setting *s, const char *name)
{
    return s->only == NULL || strstr(name, s->only) != NULL;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "kernel_bench: %s\n", what);
    exit(2);
}

/* ---- products ---- */

static void run_product(const setting *s, const void *what)
{
    sw_error err = {0};

    if (sw_product_run(s->kernel, what, s->workspace, &err) != SW_OK)
        die(err.what);
}

static void run_direct(const setting *s, const void *what)
{
    (void)s;
    probe_product_run(what);
}

static void run_peak(const setting *s, const void *what)
{
    (void)what;
    probe_peak(s->n_threads);
}

typedef struct product_row {
    const char *name;
    size_t m;
    size_t n;
    size_t k;
    bool a_is_transposed;
    bool b_is_transposed;
    bool is_bf16;
    double peak_bar;
} product_row;

// clang-format off
static const product_row products[] = {
    /* name                          m    n     k     tA     tB     bf16   bar to peak */
    { "product f32 512x1536x576",    512, 1536, 576,  false, true,  false, 0.85 },
    { "product f32 512x2048x2048",   512, 2048, 2048, false, true,  false, 0.85 },
    { "product f32 512x4096x4096",   512, 4096, 4096, false, true,  false, 0.85 },
    { "product f32 dx 512x576x1536", 512, 576,  1536, false, false, false, 0.85 },
    { "product f32 dw 1536x576x512", 1536, 576, 512,  true,  false, false, 0.85 },
    { "product f32 dw 2048x2048x512", 2048, 2048, 512, true, false, false, 0.85 },
    { "product f32 16x2048x2048",    16,  2048, 2048, false, true,  false, 0    },
    { "product bf16 512x1536x576",   512, 1536, 576,  false, true,  true,  0.80 },
    { "product bf16 512x2048x2048",  512, 2048, 2048, false, true,  true,  0.80 },
    { "product bf16 512x4096x4096",  512, 4096, 4096, false, true,  true,  0.80 },
};
// clang-format on

static sw_product product_of(const setting *s, const product_row *row)
{
    sw_dtype dtype = row->is_bf16 ? SW_DTYPE_BF16 : SW_DTYPE_F32;
    return (sw_product){.m = row->m,
                        .n = row->n,
                        .k = row->k,
                        .a = s->pool,
                        .b = s->pool + POOL_BYTES / 4,
                        .c = s->pool + POOL_BYTES / 2,
                        .a_type = dtype,
                        .b_type = dtype,
                        .c_type = SW_DTYPE_F32,
                        .a_is_transposed = row->a_is_transposed,
                        .b_is_transposed = row->b_is_transposed};
}

static void pack(const setting *s, sw_product *p)
{
    sw_error err = {0};
    size_t n_bytes = 0;

    if (sw_product_packed_bytes(s->kernel, p, &n_bytes, &err) != SW_OK || n_bytes > POOL_BYTES / 4)
        die("a packed matrix");
    char *packed = s->pool + POOL_BYTES / 4 * 3;
    if (sw_product_pack(s->kernel, p, packed, &err) != SW_OK)
        die(err.what);
    p->b = packed;
    p->b_is_packed = true;
}

static void measure_product(setting *s, const product_row *row, bool is_packed)
{
    char name[80];
    double flops = 2 * (double)row->m * (double)row->n * (double)row->k;
    double peak_flops = probe_peak_flops(s->n_threads) * (row->is_bf16 ? 2 : 1);
    sw_product p = product_of(s, row);

    (void)snprintf(name, sizeof name, "%s%s", row->name, is_packed ? " packed" : "");
    if (!is_wanted(s, name))
        return;
    probe_product *direct = probe_product_open(&p, is_packed);
    if (direct == NULL)
        die("oneDNN called directly");
    if (is_packed)
        pack(s, &p);
    times peak = race(s, run_product, &p, run_peak, NULL);
    double rate = flops / peak.ours;
    report(s, name, rate / 1e9, "GFLOP/s", "multiply-add peak", rate / (peak_flops / peak.probe),
           row->peak_bar);
    times best = race(s, run_product, &p, run_direct, direct);
    report(s, name, flops / best.ours / 1e9, "GFLOP/s", "oneDNN directly", best.probe / best.ours, 0.95);
    probe_product_close(direct);
}

static void measure_products(setting *s)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        measure_product(s, &products[i], false);
        if (products[i].b_is_transposed)
            measure_product(s, &products[i], true);
    }
}

/* ---- one row ---- */

typedef struct decode {
    sw_product p;
    size_t n_matrices;
    size_t bytes; /* of a matrix */
} decode;

static void run_decode(const setting *s, const void *what)
{
    const decode *d = what;

    for (size_t i = 0; i < d->n_matrices; i++) {
        sw_product p = d->p;
        p.b = s->pool + i * d->bytes;
        run_product(s, &p);
    }
}

static void read_pool(const setting *s, const void *what)
{
    const decode *d = what;
    probe_read(s->pool, d->n_matrices * d->bytes, s->n_threads);
}

static void measure_decode(setting *s, const char *name, size_t n, size_t k, bool is_in_out, sw_dtype b_type)
{
    decode d = {
        .p = {.m = 1,
              .n = n,
              .k = k,
              .a = s->pool,
              .c = s->workspace + (1 << 20),
              .a_type = SW_DTYPE_F32,
              .b_type = b_type,
              .c_type = SW_DTYPE_F32,
              .b_is_transposed = !is_in_out},
        .bytes = n * k * (b_type == SW_DTYPE_F32 ? 4 : 2)
    };

    d.n_matrices = POOL_BYTES / d.bytes;
    if (!is_wanted(s, name))
        return;
    times best = race(s, run_decode, &d, read_pool, &d);
    double bytes = (double)d.n_matrices * (double)d.bytes;
    report(s, name, bytes / best.ours / 1e9, "GB/s", "read", best.probe / best.ours, 0.9);
}

/* ---- row kernels ---- */

enum { ROWS = 4096, WIDTH = 2048, CELLS = ROWS * WIDTH };

typedef struct stream {
    const char *name;
    work_fn *work;
    size_t n_bytes; /* read and written, of one cell */
    double bar;
} stream;

static float *part(const setting *s, size_t i)
{
    return (float *)(void *)s->pool + i * CELLS;
}

static void do_rms(const setting *s, const void *what)
{
    (void)what;
    sw_norm_args a = {.n_rows = ROWS,
                      .width = WIDTH,
                      .eps = 1e-5,
                      .x = part(s, 0),
                      .weight = s->workspace,
                      .y = part(s, 1),
                      .scale = s->workspace + (1 << 20)};
    sw_kernel_rms_norm(s->kernel, SW_DTYPE_F32, &a);
}

static void do_rms_back(const setting *s, const void *what)
{
    (void)what;
    sw_norm_args a = {.n_rows = ROWS,
                      .width = WIDTH,
                      .eps = 1e-5,
                      .x = part(s, 0),
                      .weight = s->workspace,
                      .d_y = part(s, 1),
                      .d_x = part(s, 2),
                      .scale = s->workspace + (1 << 20),
                      .dot = s->workspace + (2 << 20)};
    sw_kernel_rms_norm_back(s->kernel, SW_DTYPE_F32, &a);
}

static void do_rms_weight(const setting *s, const void *what)
{
    (void)what;
    sw_norm_args a = {.n_rows = ROWS,
                      .width = WIDTH,
                      .x = part(s, 0),
                      .d_y = part(s, 1),
                      .scale = s->workspace + (1 << 20),
                      .d_weight = s->workspace + (2 << 20)};
    sw_kernel_rms_weight_back(s->kernel, SW_DTYPE_F32, &a);
}

static void do_layer(const setting *s, const void *what)
{
    (void)what;
    sw_norm_args a = {.n_rows = ROWS,
                      .width = WIDTH,
                      .eps = 1e-5,
                      .x = part(s, 0),
                      .weight = s->workspace,
                      .bias = s->workspace,
                      .y = part(s, 1),
                      .scale = s->workspace + (1 << 20),
                      .mean = s->workspace + (2 << 20)};
    sw_kernel_layer_norm(s->kernel, SW_DTYPE_F32, &a);
}

static void do_layer_back(const setting *s, const void *what)
{
    (void)what;
    sw_norm_args a = {.n_rows = ROWS,
                      .width = WIDTH,
                      .x = part(s, 0),
                      .d_y = part(s, 1),
                      .d_x = part(s, 2),
                      .scale = s->workspace + (1 << 20),
                      .mean = s->workspace + (2 << 20),
                      .d_weight = s->workspace + (3 << 20),
                      .d_bias = s->workspace + (4 << 20)};
    sw_kernel_layer_norm_back(s->kernel, SW_DTYPE_F32, &a);
}

static void do_softmax(const setting *s, const void *what)
{
    (void)what;
    sw_softmax_args a = {.n_rows = ROWS, .width = WIDTH, .x = part(s, 0), .out = part(s, 1)};
    sw_kernel_softmax(s->kernel, SW_DTYPE_F32, &a);
}

static void do_rotary(const setting *s, const void *what)
{
    (void)what;
    sw_rotary_args a = {.n_tokens = ROWS,
                        .n_heads = WIDTH / 64,
                        .width = 64,
                        .rotated = 64,
                        .cos = part(s, 2),
                        .sin = part(s, 3),
                        .x = part(s, 0),
                        .y = part(s, 1),
                        .x_stride = WIDTH,
                        .y_stride = WIDTH};
    sw_kernel_rotary(s->kernel, SW_DTYPE_F32, &a);
}

static void do_rotary_interleaved(const setting *s, const void *what)
{
    (void)what;
    sw_rotary_args a = {.n_tokens = ROWS,
                        .n_heads = WIDTH / 64,
                        .width = 64,
                        .rotated = 64,
                        .is_interleaved = true,
                        .cos = part(s, 2),
                        .sin = part(s, 3),
                        .x = part(s, 0),
                        .y = part(s, 1),
                        .x_stride = WIDTH,
                        .y_stride = WIDTH};
    sw_kernel_rotary(s->kernel, SW_DTYPE_F32, &a);
}

static void do_silu(const setting *s, const void *what)
{
    (void)what;
    sw_kernel_activate(s->kernel, SW_DTYPE_F32, SW_ACT_SILU, part(s, 0), part(s, 1), CELLS);
}

static void do_gelu(const setting *s, const void *what)
{
    (void)what;
    sw_kernel_activate(s->kernel, SW_DTYPE_F32, SW_ACT_GELU, part(s, 0), part(s, 1), CELLS);
}

static void do_gelu_back(const setting *s, const void *what)
{
    (void)what;
    sw_kernel_activate_back(s->kernel, SW_DTYPE_F32, SW_ACT_GELU, part(s, 0), part(s, 1), part(s, 2), CELLS);
}

static void do_gelu_tanh_back(const setting *s, const void *what)
{
    (void)what;
    sw_kernel_activate_back(s->kernel, SW_DTYPE_F32, SW_ACT_GELU_TANH, part(s, 0), part(s, 1), part(s, 2),
                            CELLS);
}

static void do_swiglu(const setting *s, const void *what)
{
    (void)what;
    sw_glu_args a = {.n_rows = ROWS,
                     .width = WIDTH,
                     .gate = part(s, 0),
                     .up = part(s, 1),
                     .stride = WIDTH,
                     .out = part(s, 2)};
    sw_kernel_glu(s->kernel, SW_DTYPE_F32, &a);
}

static void do_swiglu_back(const setting *s, const void *what)
{
    (void)what;
    sw_glu_args a = {.n_rows = ROWS,
                     .width = WIDTH,
                     .gate = part(s, 0),
                     .up = part(s, 1),
                     .stride = WIDTH,
                     .d_out = part(s, 2),
                     .d_gate = part(s, 3),
                     .d_up = part(s, 4),
                     .d_stride = WIDTH};
    sw_kernel_glu_back(s->kernel, SW_DTYPE_F32, &a);
}

static void do_to_bf16(const setting *s, const void *what)
{
    (void)what;
    sw_kernel_to_bf16(s->kernel, part(s, 0), (uint16_t *)(void *)part(s, 1), CELLS);
}

static void do_adamw(const setting *s, const void *what)
{
    (void)what;
    sw_optimizer_args a = {.n = CELLS,
                           .param = part(s, 0),
                           .grad = part(s, 1),
                           .m = part(s, 2),
                           .v = part(s, 3),
                           .step = 5,
                           .lr = 1e-3,
                           .decay = 0.1,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .clip = 1};
    sw_kernel_adamw(s->kernel, SW_DTYPE_F32, &a);
}

// clang-format off
static const stream streams[] = {
    { "rms norm",            do_rms,            8,  0.7 },
    { "rms norm back, d_x",  do_rms_back,       12, 0.7 },
    { "rms norm back, d_w",  do_rms_weight,     8,  0.7 },
    { "layer norm",          do_layer,          8,  0.7 },
    { "layer norm back",     do_layer_back,     20, 0.7 },
    { "softmax",             do_softmax,        8,  0   },
    { "rotary",              do_rotary,         8,  0.7 },
    { "rotary interleaved",  do_rotary_interleaved, 8, 0.7 },
    { "silu",                do_silu,           8,  0.7 },
    { "gelu",                do_gelu,           8,  0.7 },
    { "gelu back",           do_gelu_back,      12, 0.7 },
    { "gelu tanh back",      do_gelu_tanh_back, 12, 0.7 },
    { "swiglu",              do_swiglu,         12, 0.7 },
    { "swiglu back",         do_swiglu_back,    20, 0.7 },
    { "to bf16",             do_to_bf16,        6,  0.7 },
    { "adamw",               do_adamw,          28, 0.7 },
};
// clang-format on

static void copy_part(const setting *s, const void *what)
{
    (void)what;
    probe_copy(part(s, 1), part(s, 0), (size_t)CELLS * sizeof(float), s->n_threads);
}

static void measure_streams(setting *s)
{
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        const stream *row = &streams[i];
        if (!is_wanted(s, row->name))
            continue;
        memset(part(s, 3), 0, (size_t)CELLS * sizeof(float)); /* second moments are not negative */
        times best = race(s, row->work, NULL, copy_part, NULL);
        double rate = (double)row->n_bytes * CELLS / best.ours;
        report(s, row->name, rate / 1e9, "GB/s", "copy", rate / (8.0 * CELLS / best.probe), row->bar);
    }
}

/* ---- attention ---- */

static void do_attention(const setting *s, const void *what)
{
    sw_kernel_attention(s->kernel, SW_DTYPE_F32, what, s->workspace);
}

static void do_attention_back(const setting *s, const void *what)
{
    sw_kernel_attention_back(s->kernel, SW_DTYPE_F32, what, s->workspace);
}

static void measure_attention(setting *s)
{
    enum { TOKENS = 1024, HEADS = 9, KV_HEADS = 3, D = 64, PART = TOKENS * HEADS * D };
    float *p = (float *)(void *)s->pool;
    sw_heads q = {p, 0, (size_t)HEADS * D, D};
    sw_heads k = {p + PART, 0, (size_t)KV_HEADS * D, D};
    sw_heads v = {p + (size_t)2 * PART, 0, (size_t)KV_HEADS * D, D};
    sw_heads_out outs[4];
    for (size_t i = 0; i < 4; i++) {
        size_t heads = i < 2 ? HEADS : KV_HEADS;
        outs[i] = (sw_heads_out){p + (4 + i) * PART, 0, heads * D, D};
    }
    sw_attention_args a = {
        .n_batch = 1,
        .n_queries = TOKENS,
        .n_keys = TOKENS,
        .n_heads = HEADS,
        .n_kv_heads = KV_HEADS,
        .width = D,
        .v_width = D,
        .scale = 0.125,
        .is_causal = true,
        .q = q,
        .k = k,
        .v = v,
        .out = outs[0],
        .lse = p + (size_t)9 * PART,
        .d_out = {p + (size_t)3 * PART, 0, (size_t)HEADS * D, D},
        .d_q = outs[1],
        .d_k = outs[2],
        .d_v = outs[3]
    };
    sw_product gemm = {.m = 1024,
                       .n = 2048,
                       .k = 2048,
                       .a = s->pool,
                       .b = s->pool + POOL_BYTES / 4,
                       .c = s->pool + POOL_BYTES / 2,
                       .a_type = SW_DTYPE_F32,
                       .b_type = SW_DTYPE_F32,
                       .c_type = SW_DTYPE_F32,
                       .b_is_transposed = true};
    double flops = 4.0 * TOKENS * (TOKENS + 1) / 2 * D * HEADS; /* what a causal mask leaves */
    double gemm_flops = 2.0 * 1024 * 2048 * 2048;

    if (is_wanted(s, "attention")) {
        times best = race(s, do_attention, &a, run_product, &gemm);
        double rate = flops / best.ours;
        report(s, "attention, 1024 tokens, causal", rate / 1e9, "GFLOP/s", "product",
               rate / (gemm_flops / best.probe), 0.5);
        best = race(s, do_attention_back, &a, run_product, &gemm);
        rate = 2.5 * flops / best.ours; /* five products; what is made twice is not counted */
        report(s, "attention back", rate / 1e9, "GFLOP/s", "product", rate / (gemm_flops / best.probe), 0);
        a.n_queries = 1;
        a.is_causal = false;
        best = race(s, do_attention, &a, run_product, &gemm);
        rate = 2.0 * KV_HEADS * D * TOKENS * sizeof(float) / best.ours;
        report(s, "attention, 1 query", rate / 1e9, "GB/s", "(keys and values once)", 0, 0);
    }
}

/* ---- the program ---- */

static void pin_threads(uint32_t n_threads)
{
#ifdef _OPENMP
    omp_set_num_threads((int)n_threads);
#pragma omp parallel
    {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)omp_get_thread_num(), &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
#else
    (void)n_threads;
#endif
}

static char *touched(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        die("memory");
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    float *values = (float *)(void *)memory;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        values[i] = (float)(i % 251) / 251 - 0.5F;
    return memory;
}

static uint32_t number(const char *text)
{
    uint32_t n = (uint32_t)strtoul(text == NULL ? "" : text, NULL, 10);
    if (n == 0)
        die("give a number from 1 on");
    return n;
}

int main(int argc, char **argv)
{
    setting s = {.n_threads = 2, .n_rounds = 15};
    sw_error err = {0};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--strict") == 0)
            s.is_strict = true;
        else if (strcmp(argv[i], "--threads") == 0)
            s.n_threads = number(value), i++;
        else if (strcmp(argv[i], "--rounds") == 0)
            s.n_rounds = number(value), i++;
        else if (strcmp(argv[i], "--only") == 0)
            s.only = value, i++;
        else
            die("usage: kernel_bench [--threads N] [--rounds N] [--only TEXT] [--strict]");
    }
    pin_threads(s.n_threads);
    if (sw_kernel_create(&s.kernel, s.n_threads, SW_KERNEL_BEST, &err) != SW_OK)
        die(err.what);
    s.pool = touched(POOL_BYTES);
    s.workspace = touched(64 << 20);
    printf("kernels %s, %" PRIu32 " threads\n", sw_kernel_variant_name(sw_kernel_variant_of(s.kernel)),
           s.n_threads);
    measure_products(&s);
    measure_decode(&s, "one row f32 4096x2048", 4096, 2048, false, SW_DTYPE_F32);
    measure_decode(&s, "one row f32 1536x576", 1536, 576, false, SW_DTYPE_F32);
    measure_decode(&s, "one row bf16 4096x2048", 4096, 2048, false, SW_DTYPE_BF16);
    measure_decode(&s, "one row bf16 1536x576", 1536, 576, false, SW_DTYPE_BF16);
    measure_decode(&s, "one row f32 in-out 768x3072", 3072, 768, true, SW_DTYPE_F32);
    measure_streams(&s);
    measure_attention(&s);
    sw_kernel_destroy(s.kernel);
    return s.is_strict && s.missed ? 1 : 0;
}
