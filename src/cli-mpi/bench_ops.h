/* What `bench ops` measures: the kernels of one rank beside what the machine can do (kernel/probe.h). */
#ifndef SW_CLI_MPI_BENCH_OPS_H
#define SW_CLI_MPI_BENCH_OPS_H

#include "cli-mpi/bench.h"
#include "kernel/product.h"

typedef struct sw_ops_limits {
    uint32_t n_rounds;
    const char *only; /* text in the section or the name of what is measured; NULL: all */
} sw_ops_limits;

/*
 * All rows of all tables that `limits` leaves. Bars are those of the processor's vector units; nothing is
 * compared with a library that the build has not. SW_E_ARGUMENT: no row has the text; SW_E_NO_MEMORY.
 */
sw_status sw_bench_ops(sw_kernel *kernel, const sw_ops_limits *limits, sw_bench_results *results,
                       sw_error *err);

/* ---- for the files bench_ops*.c ---- */

enum { SW_OPS_POOL_BYTES = 256 << 20, SW_OPS_WORKSPACE_BYTES = 64 << 20 };

/* What all measurements work on. The pool is larger than caches; values are between -0.5 and 0.5. */
typedef struct sw_ops_bed {
    sw_kernel *kernel;
    const sw_ops_limits *limits;
    sw_bench_results *results;
    char *pool;
    char *workspace;
} sw_ops_bed;

/* One way to spend time: a call on the bed and on what stands behind `what`. */
typedef void sw_ops_work(const sw_ops_bed *bed, const void *what);

/* One measurement: ours and bare in turn. Amounts are what a call does, in thousand millions of the unit. */
typedef struct sw_ops_race {
    const char *section;
    const char *name;
    const char *unit; /* "GFLOP/s" */
    double bar;       /* at least; 0: only shown */
    sw_ops_work *ours;
    const void *ours_what;
    double ours_amount;
    sw_ops_work *bare;
    const void *bare_what;
    double bare_amount;
} sw_ops_race;

/*
 * Run and add to the results: rounds of both sides in turn, of which the ratio in the middle counts, so that
 * both are of one state of the machine; on one thread it is the thread's own time.
 */
sw_status sw_ops_measure(const sw_ops_bed *bed, const sw_ops_race *race, sw_error *err);

/* Run a product once: it has the workspace that it needs, and does not fail from then on. */
sw_status sw_ops_prepare(const sw_ops_bed *bed, const sw_product *product, sw_error *err);
sw_ops_work sw_ops_product; /* of a prepared sw_product */

sw_status sw_ops_products(const sw_ops_bed *bed, sw_error *err);
sw_status sw_ops_streams(const sw_ops_bed *bed, sw_error *err);
sw_status sw_ops_attention(const sw_ops_bed *bed, sw_error *err);

#endif
