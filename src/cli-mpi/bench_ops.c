/* The bed of `bench ops`, and how a measurement is made (cli-mpi/bench_ops.h). The tables are in the files
 * beside. */
#include "cli-mpi/bench_ops.h"

#include <string.h>
#include <time.h>

#include "base/status.h"
#include "kernel/product.h"

static double seconds_of(const sw_ops_bed *bed, sw_ops_work *work, const void *what)
{
    clockid_t clock = sw_kernel_threads(bed->kernel) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    struct timespec begin;
    struct timespec end;

    (void)clock_gettime(clock, &begin);
    work(bed, what);
    (void)clock_gettime(clock, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

sw_status sw_ops_measure(const sw_ops_bed *bed, const sw_ops_race *race, sw_error *err)
{
    sw_bench_result row = {.section = race->section,
                           .name = race->name,
                           .unit = race->unit,
                           .bar_kind = race->bar == 0 ? SW_BENCH_SHOWN : SW_BENCH_LEAST,
                           .bar = race->bar};
    sw_bench_result *result = NULL;
    double times[2][SW_BENCH_MOST_ROUNDS]; /* ours, bare */

    SW_TRY(sw_bench_add(bed->results, &row, &result, err));
    race->ours(bed, race->ours_what); /* pages and primitives are there before the first round */
    race->bare(bed, race->bare_what);
    for (uint32_t r = 0; r < bed->limits->n_rounds; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t side = (r + i) % 2; /* each begins every second round */
            times[side][r] = side == 0 ? seconds_of(bed, race->ours, race->ours_what)
                                       : seconds_of(bed, race->bare, race->bare_what);
        }
    }
    sw_bench_middle(&result->figures, times[0], times[1], bed->limits->n_rounds);
    result->figures.ours = race->ours_amount / result->figures.ours;
    result->figures.bare = race->bare_amount / result->figures.bare;
    result->figures.ratio = race->ours_amount / race->bare_amount / result->figures.ratio;
    return SW_OK;
}

sw_status sw_ops_prepare(const sw_ops_bed *bed, const sw_product *product, sw_error *err)
{
    size_t n_bytes = 0;

    SW_TRY(sw_product_workspace(bed->kernel, product, &n_bytes, err));
    if (n_bytes > SW_OPS_WORKSPACE_BYTES)
        return SW_FAIL(err, SW_E_LIMIT, "", "a product with %zu bytes of workspace", n_bytes);
    return sw_product_run(bed->kernel, product, bed->workspace, err);
}

void sw_ops_product(const sw_ops_bed *bed, const void *what)
{
    (void)sw_product_run(bed->kernel, what, bed->workspace, NULL);
}

/* ---- all of them ---- */

sw_status sw_bench_ops(sw_kernel *kernel, const sw_ops_limits *limits, sw_bench_results *results,
                       sw_error *err)
{
    static sw_status (*const parts[])(const sw_ops_bed *bed,
                                      sw_error *err) = {sw_ops_products, sw_ops_streams, sw_ops_attention};
    sw_bench_room pool SW_AUTO(sw_bench_room_clear) = {0};
    sw_bench_room workspace SW_AUTO(sw_bench_room_clear) = {0};
    sw_ops_bed bed = {.kernel = kernel, .limits = limits, .results = results};

    SW_TRY(sw_bench_room_make(&pool, SW_OPS_POOL_BYTES, err));
    SW_TRY(sw_bench_room_make(&workspace, SW_OPS_WORKSPACE_BYTES, err));
    bed.pool = pool.memory;
    bed.workspace = workspace.memory;
    for (size_t i = 0; i < SW_COUNT(parts); i++)
        SW_TRY(parts[i](&bed, err));
    if (results->n == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "without --only all of them are measured",
                       "no measurement has '%.100s' in its name", limits->only);
    return SW_OK;
}
