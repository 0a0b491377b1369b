/*
 * Products: many rows beside multiply-adds in registers and beside the library called directly, one row
 * beside a plain read of the same weights.
 */
#include "cli-mpi/bench_ops.h"

#include "base/status.h"
#include "kernel/probe.h"
#include "kernel/product.h"

/* ---- many rows ---- */

// clang-format off
static const struct many {
    const char *name;
    size_t m, n, k;
    sw_dtype dtype; /* of A and B; C is F32 */
    bool a_is_transposed;
    bool b_is_transposed;
    double peak_bar;
} many[] = {
    /* name                   m     n     k     type           tA     tB     bar to the peak */
    { "f32 512x1536x576",     512,  1536, 576,  SW_DTYPE_F32,  false, true,  0.85 },
    { "f32 512x2048x2048",    512,  2048, 2048, SW_DTYPE_F32,  false, true,  0.85 },
    { "f32 512x4096x4096",    512,  4096, 4096, SW_DTYPE_F32,  false, true,  0.85 },
    { "f32 dx 512x576x1536",  512,  576,  1536, SW_DTYPE_F32,  false, false, 0.85 },
    { "f32 dw 1536x576x512",  1536, 576,  512,  SW_DTYPE_F32,  true,  false, 0.85 },
    { "f32 dw 2048x2048x512", 2048, 2048, 512,  SW_DTYPE_F32,  true,  false, 0.85 },
    { "f32 16x2048x2048",     16,   2048, 2048, SW_DTYPE_F32,  false, true,  0    },
    { "bf16 512x1536x576",    512,  1536, 576,  SW_DTYPE_BF16, false, true,  0.80 },
    { "bf16 512x2048x2048",   512,  2048, 2048, SW_DTYPE_BF16, false, true,  0.80 },
    { "bf16 512x4096x4096",   512,  4096, 4096, SW_DTYPE_BF16, false, true,  0.80 },
};

/* Each row in each form. */
static const struct form {
    const char *section;
    bool is_packed;
    bool is_direct; /* beside the library; otherwise beside the peak, which for BF16 is twice that of F32 */
} forms[] = {
    { "product to peak",           false, false },
    { "product to library",        false, true  },
    { "packed product to peak",    true,  false },
    { "packed product to library", true,  true  },
};
// clang-format on

static void run_peak(const sw_ops_bed *bed, const void *what)
{
    (void)what;
    sw_probe_peak(bed->kernel);
}

static void run_direct(const sw_ops_bed *bed, const void *what)
{
    (void)bed;
    sw_probe_product_run(what);
}

/* A, B, C and a packed B have a quarter of the pool each. */
static char *quarter(const sw_ops_bed *bed, size_t i)
{
    return bed->pool + i * (SW_OPS_POOL_BYTES / 4);
}

static sw_status pack(const sw_ops_bed *bed, sw_product *p, sw_error *err)
{
    size_t n_bytes = 0;
    char *packed = quarter(bed, 3);

    SW_TRY(sw_product_packed_bytes(bed->kernel, p, &n_bytes, err));
    if (n_bytes > SW_OPS_POOL_BYTES / 4)
        return SW_FAIL(err, SW_E_LIMIT, "", "a packed matrix of %zu bytes", n_bytes);
    SW_TRY(sw_product_pack(bed->kernel, p, packed, err));
    p->b = packed;
    p->b_is_packed = true;
    return SW_OK;
}

static void drop_probe(sw_probe_product **probe)
{
    sw_probe_product_destroy(*probe);
}

static sw_status measure_many(const sw_ops_bed *bed, const struct form *form, const struct many *row,
                              sw_error *err)
{
    sw_probe_product *direct SW_AUTO(drop_probe) = NULL;
    double amount = 2e-9 * (double)row->m * (double)row->n * (double)row->k;
    sw_product p = {.m = row->m,
                    .n = row->n,
                    .k = row->k,
                    .a = quarter(bed, 0),
                    .b = quarter(bed, 1),
                    .c = quarter(bed, 2),
                    .a_type = row->dtype,
                    .b_type = row->dtype,
                    .c_type = SW_DTYPE_F32,
                    .a_is_transposed = row->a_is_transposed,
                    .b_is_transposed = row->b_is_transposed};

    if (form->is_direct)
        SW_TRY(sw_probe_product_create(&direct, bed->kernel, &p, form->is_packed, err));
    if (form->is_packed)
        SW_TRY(pack(bed, &p, err));
    SW_TRY(sw_ops_prepare(bed, &p, err));
    double peak = sw_probe_peak_flops(bed->kernel) * (row->dtype == SW_DTYPE_BF16 ? 2e-9 : 1e-9);
    sw_ops_race race = {.section = form->section,
                        .name = row->name,
                        .unit = "GFLOP/s",
                        .bar = form->is_direct ? 0.95 : row->peak_bar,
                        .ours = sw_ops_product,
                        .ours_what = &p,
                        .ours_amount = amount,
                        .bare = form->is_direct ? run_direct : run_peak,
                        .bare_what = direct,
                        .bare_amount = form->is_direct ? amount : peak};
    return sw_ops_measure(bed, &race, err);
}

/* ---- one row ---- */

static const char one_section[] = "one row to read";

// clang-format off
static const struct one {
    const char *name;
    size_t n, k;
    sw_dtype b_type;
    bool is_in_out; /* weights stored [K, N], as GPT-2's Conv1D has them */
} ones[] = {
    { "f32 4096x2048",        4096, 2048, SW_DTYPE_F32,  false },
    { "f32 1536x576",         1536, 576,  SW_DTYPE_F32,  false },
    { "f32 in-out 768x3072",  3072, 768,  SW_DTYPE_F32,  true  },
    { "bf16 4096x2048",       4096, 2048, SW_DTYPE_BF16, false },
    { "bf16 1536x576",        1536, 576,  SW_DTYPE_BF16, false },
};
// clang-format on

/* The product by one matrix after the other, so that each comes from memory. */
typedef struct decode {
    sw_product product;
    size_t n_matrices;
    size_t n_bytes; /* of one */
} decode;

static void run_decode(const sw_ops_bed *bed, const void *what)
{
    const decode *d = what;
    sw_product p = d->product;

    for (size_t i = 0; i < d->n_matrices; i++) {
        p.b = bed->pool + i * d->n_bytes;
        sw_ops_product(bed, &p);
    }
}

/* One matrix after the other here too: on several threads each call has its fork and its join. */
static void read_weights(const sw_ops_bed *bed, const void *what)
{
    const decode *d = what;

    for (size_t i = 0; i < d->n_matrices; i++)
        sw_probe_read(bed->kernel, bed->pool + i * d->n_bytes, d->n_bytes);
}

static sw_status measure_one(const sw_ops_bed *bed, const struct one *row, sw_error *err)
{
    char *vectors = bed->workspace + SW_OPS_WORKSPACE_BYTES / 2;
    decode d = {
        .product = {.m = 1,
                    .n = row->n,
                    .k = row->k,
                    .a = vectors,
                    .b = bed->pool,
                    .c = vectors + SW_OPS_WORKSPACE_BYTES / 4,
                    .a_type = SW_DTYPE_F32,
                    .b_type = row->b_type,
                    .c_type = SW_DTYPE_F32,
                    .b_is_transposed = !row->is_in_out},
        .n_bytes = row->n * row->k * (row->b_type == SW_DTYPE_F32 ? 4 : 2)
    };

    d.n_matrices = SW_OPS_POOL_BYTES / d.n_bytes;
    SW_TRY(sw_ops_prepare(bed, &d.product, err));
    double amount = 1e-9 * (double)d.n_matrices * (double)d.n_bytes;
    sw_ops_race race = {.section = one_section,
                        .name = row->name,
                        .unit = "GB/s",
                        .bar = 0.9,
                        .ours = run_decode,
                        .ours_what = &d,
                        .ours_amount = amount,
                        .bare = read_weights,
                        .bare_what = &d,
                        .bare_amount = amount};
    return sw_ops_measure(bed, &race, err);
}

sw_status sw_ops_products(const sw_ops_bed *bed, sw_error *err)
{
    bool has_library = sw_probe_library_name() != NULL;

    for (size_t f = 0; f < SW_COUNT(forms); f++) {
        for (size_t i = 0; i < SW_COUNT(many); i++) {
            bool is_there = (has_library || !forms[f].is_direct) &&
                            (many[i].b_is_transposed || !forms[f].is_packed); /* gradients pack nothing */
            if (is_there && sw_bench_is_wanted(bed->limits->only, forms[f].section, many[i].name))
                SW_TRY(measure_many(bed, &forms[f], &many[i], err));
        }
    }
    for (size_t i = 0; i < SW_COUNT(ones); i++) {
        if (sw_bench_is_wanted(bed->limits->only, one_section, ones[i].name))
            SW_TRY(measure_one(bed, &ones[i], err));
    }
    return SW_OK;
}
