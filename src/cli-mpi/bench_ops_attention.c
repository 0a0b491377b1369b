/* Attention beside the product that a training step has, and for one query beside a read of keys and values.
 */
#include "cli-mpi/bench_ops.h"

#include "base/status.h"
#include "kernel/attention.h"
#include "kernel/probe.h"
#include "kernel/product.h"

enum { TOKENS = 1024, HEADS = 9, KV_HEADS = 3, WIDTH = 64, PART = TOKENS * HEADS * WIDTH };

static const char section[] = "attention to product or read";

// clang-format off
static const struct attention {
    const char *name;
    size_t n_queries;
    bool is_causal;
    bool is_back;
    double n_products; /* of tiles; what the backward makes twice is not counted. 0: beside a read */
    double bar;
} attentions[] = {
    { "causal, 1024 tokens",      TOKENS, true,  false, 2, 0.5 },
    { "causal, 1024 tokens back", TOKENS, true,  true,  5, 0   },
    { "one query, 1024 keys",     1,      false, false, 0, 0   },
};
// clang-format on

static float *part(const sw_ops_bed *bed, size_t i)
{
    return (float *)(void *)bed->pool + i * PART;
}

static sw_heads heads_of(const sw_ops_bed *bed, size_t i, size_t n_heads)
{
    return (sw_heads){part(bed, i), 0, n_heads * WIDTH, WIDTH};
}

static sw_heads_out heads_to(const sw_ops_bed *bed, size_t i, size_t n_heads)
{
    return (sw_heads_out){part(bed, i), 0, n_heads * WIDTH, WIDTH};
}

static sw_attention_args args_of(const sw_ops_bed *bed, const struct attention *row)
{
    return (sw_attention_args){.n_batch = 1,
                               .n_queries = row->n_queries,
                               .n_keys = TOKENS,
                               .n_heads = HEADS,
                               .n_kv_heads = KV_HEADS,
                               .width = WIDTH,
                               .v_width = WIDTH,
                               .scale = 0.125,
                               .is_causal = row->is_causal,
                               .q = heads_of(bed, 0, HEADS),
                               .k = heads_of(bed, 1, KV_HEADS),
                               .v = heads_of(bed, 2, KV_HEADS),
                               .d_out = heads_of(bed, 3, HEADS),
                               .out = heads_to(bed, 4, HEADS),
                               .d_q = heads_to(bed, 5, HEADS),
                               .d_k = heads_to(bed, 6, KV_HEADS),
                               .d_v = heads_to(bed, 7, KV_HEADS),
                               .lse = part(bed, 9)};
}

static void run_attention(const sw_ops_bed *bed, const void *what)
{
    sw_kernel_attention(bed->kernel, SW_DTYPE_F32, what, bed->workspace);
}

static void run_attention_back(const sw_ops_bed *bed, const void *what)
{
    sw_kernel_attention_back(bed->kernel, SW_DTYPE_F32, what, bed->workspace);
}

/* Keys and values, once. */
enum { KV_BYTES = 2 * TOKENS * KV_HEADS * WIDTH * 4 };

static void read_keys_and_values(const sw_ops_bed *bed, const void *what)
{
    (void)what;
    sw_probe_read(bed->kernel, part(bed, 1), KV_BYTES);
}

static sw_status check_workspace(const sw_ops_bed *bed, const sw_attention_args *args, bool is_back,
                                 sw_error *err)
{
    size_t n_bytes = 0;

    SW_TRY(sw_attention_workspace(bed->kernel, SW_DTYPE_F32, args, is_back, &n_bytes, err));
    if (n_bytes > SW_OPS_WORKSPACE_BYTES)
        return SW_FAIL(err, SW_E_LIMIT, "", "an attention with %zu bytes of workspace", n_bytes);
    return SW_OK;
}

static sw_status measure(const sw_ops_bed *bed, const struct attention *row, const sw_product *product,
                         sw_error *err)
{
    bool beside_read = row->n_products == 0;
    double product_flops = 2.0 * (double)product->m * (double)product->n * (double)product->k;
    double flops = 2.0 * row->n_products * TOKENS * (TOKENS + 1) / 2 * WIDTH * HEADS; /* what a mask leaves */
    sw_attention_args args = args_of(bed, row);
    sw_ops_race race = {.section = section,
                        .name = row->name,
                        .unit = beside_read ? "GB/s" : "GFLOP/s",
                        .bar = row->bar,
                        .ours = row->is_back ? run_attention_back : run_attention,
                        .ours_what = &args,
                        .ours_amount = 1e-9 * (beside_read ? KV_BYTES : flops),
                        .bare = beside_read ? read_keys_and_values : sw_ops_product,
                        .bare_what = product,
                        .bare_amount = 1e-9 * (beside_read ? KV_BYTES : product_flops)};

    SW_TRY(check_workspace(bed, &args, row->is_back, err));
    return sw_ops_measure(bed, &race, err);
}

sw_status sw_ops_attention(const sw_ops_bed *bed, sw_error *err)
{
    sw_product product = {.m = 1024,
                          .n = 2048,
                          .k = 2048,
                          .a = bed->pool + SW_OPS_POOL_BYTES / 4,
                          .b = bed->pool + SW_OPS_POOL_BYTES / 2,
                          .c = bed->pool + (size_t)SW_OPS_POOL_BYTES / 4 * 3,
                          .a_type = SW_DTYPE_F32,
                          .b_type = SW_DTYPE_F32,
                          .c_type = SW_DTYPE_F32,
                          .b_is_transposed = true};

    for (size_t i = 0; i < SW_COUNT(attentions); i++) {
        if (!sw_bench_is_wanted(bed->limits->only, section, attentions[i].name))
            continue;
        SW_TRY(sw_ops_prepare(bed, &product, err));
        SW_TRY(measure(bed, &attentions[i], &product, err));
    }
    return SW_OK;
}
