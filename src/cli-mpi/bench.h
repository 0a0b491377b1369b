/*
 * Measuring a thing against a bare one in the same run: rounds of both in turn, so that what else the machine
 * does meets both, and of the rounds' ratios the one in the middle. The time of a round is that of the
 * slowest rank.
 */
#ifndef SW_CLI_MPI_BENCH_H
#define SW_CLI_MPI_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "shardwright/error.h"

enum { SW_BENCH_MOST_ROUNDS = 1000 };

/* Two ways to do the same, on `what`. */
typedef struct sw_bench_pair {
    void (*ours)(void *what);
    void (*bare)(void *what);
    void *what;
} sw_bench_pair;

/* Of the rounds in the middle; seconds of one call. */
typedef struct sw_bench_times {
    double ours;
    double bare;
    double ratio; /* ours to bare */
} sw_bench_times;

/* Collective over `job`. */
void sw_bench_measure(sw_bench_times *out, const sw_bench_pair *pair, uint32_t n_rounds, MPI_Comm job);

/* ---- results ---- */

/* What a measurement is judged by; none: only shown. */
typedef enum sw_bench_bar_kind { SW_BENCH_SHOWN = 0, SW_BENCH_RATIO, SW_BENCH_SECONDS } sw_bench_bar_kind;

typedef struct sw_bench_result {
    const char *section;
    const char *name;
    uint64_t bytes;
    sw_bench_times times;
    sw_bench_bar_kind bar_kind;
    double bar; /* at most this */
} sw_bench_result;

bool sw_bench_is_met(const sw_bench_result *result);

#endif
