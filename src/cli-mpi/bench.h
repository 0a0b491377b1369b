/*
 * Measuring a thing against a bare one in the same run: rounds of both in turn, so that what else the machine
 * does meets both; and what came of it.
 */
#ifndef SW_CLI_MPI_BENCH_H
#define SW_CLI_MPI_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/json_write.h"
#include "shardwright/error.h"

enum { SW_BENCH_MOST_ROUNDS = 1000 };

/* Two ways to do the same, on `what`. */
typedef struct sw_bench_pair {
    void (*ours)(void *what);
    void (*bare)(void *what);
    void *what;
} sw_bench_pair;

/* Seconds of one call, or rates. */
typedef struct sw_bench_figures {
    double ours;
    double bare;
    double ratio; /* ours to bare */
} sw_bench_figures;

/*
 * Seconds, of the rounds in the middle, as their ratio is the one in the middle; the time of a round is that
 * of the slowest rank. Collective over `job`.
 */
void sw_bench_measure(sw_bench_figures *out, const sw_bench_pair *pair, uint32_t n_rounds, MPI_Comm job);

/* ---- results ---- */

/* What a measurement is judged by; none: only shown. */
typedef enum sw_bench_bar_kind {
    SW_BENCH_SHOWN = 0,
    SW_BENCH_RATIO,   /* at most this ratio */
    SW_BENCH_SECONDS, /* at most so long */
    SW_BENCH_LEAST,   /* at least this ratio, of rates */
} sw_bench_bar_kind;

typedef struct sw_bench_result {
    const char *section;
    const char *name;
    uint64_t bytes;   /* moved; with rates 0 */
    const char *unit; /* of rates; NULL: the figures are seconds */
    sw_bench_figures figures;
    sw_bench_bar_kind bar_kind;
    double bar;
} sw_bench_result;

bool sw_bench_is_met(const sw_bench_result *result);

/* Room for the results of any run. */
enum { SW_BENCH_MOST_RESULTS = 96 };

typedef struct sw_bench_results {
    sw_bench_result rows[SW_BENCH_MOST_RESULTS];
    uint32_t n;
} sw_bench_results;

/* The next row, with the fields of `row`; SW_E_LIMIT when there is no room. */
sw_status sw_bench_add(sw_bench_results *results, const sw_bench_result *row, sw_bench_result **out,
                       sw_error *err);

/* As lines, a heading to each section, and how many bars were kept; as an array of JSON. */
void sw_bench_put_text(const sw_bench_results *results, sw_buffer *out);
void sw_bench_put_json(const sw_bench_results *results, sw_json_writer *writer);

#endif
