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
#include "kernel/kernel.h"
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

/* The figures of rounds whose times are given, in seconds; their order is not kept. */
void sw_bench_middle(sw_bench_figures *out, double *ours, double *bare, uint32_t n_rounds);

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

/* What the machine can do, before a run and after it. */
typedef struct sw_bench_probe {
    const char *name;
    const char *unit;
    double before;
    double after;
} sw_bench_probe;

/* Room for the results of any run. */
enum { SW_BENCH_MOST_RESULTS = 96, SW_BENCH_MOST_PROBES = 8 };

typedef struct sw_bench_results {
    sw_bench_result rows[SW_BENCH_MOST_RESULTS];
    uint32_t n;
    sw_bench_probe probes[SW_BENCH_MOST_PROBES];
    uint32_t n_probes;
} sw_bench_results;

/* The next row, with the fields of `row`, to *out unless NULL; SW_E_LIMIT when there is no room. */
sw_status sw_bench_add(sw_bench_results *results, const sw_bench_result *row, sw_bench_result **out,
                       sw_error *err);

/* Has what is measured `only` in its name or in that of its section? NULL: everything is wanted. */
bool sw_bench_is_wanted(const char *only, const char *section, const char *name);

/* A probe's figure: the first of its name is the one before, the next the one after. */
void sw_bench_note(sw_bench_results *results, const char *name, const char *unit, double figure);

/* The probe whose two figures differ by more than 15 %: ratios of such a run say nothing. NULL: none. */
const sw_bench_probe *sw_bench_unsteady(const sw_bench_results *results);

/* As lines, a heading to each section, and how many bars were kept; as an array of JSON. */
void sw_bench_put_text(const sw_bench_results *results, sw_buffer *out);
void sw_bench_put_json(const sw_bench_results *results, sw_json_writer *writer);
void sw_bench_put_json_probes(const sw_bench_results *results, sw_json_writer *writer);

/* ---- memory to work on: large pages where the system has them, values between -0.5 and 0.5 ---- */

typedef struct sw_bench_room {
    char *memory;
    void *block; /* what is freed */
} sw_bench_room;

sw_status sw_bench_room_make(sw_bench_room *out, size_t n_bytes, sw_error *err);
void sw_bench_room_clear(sw_bench_room *room);

/* ---- the machine: called before the measurements and after them ---- */

/* Multiply-adds, reads, copies by all threads, and a line of memory between two. SW_E_NO_MEMORY. */
sw_status sw_bench_probe_cores(const sw_kernel *kernel, sw_bench_results *results, sw_error *err);

/* Copies by all ranks of `job` at once, and their sum of 8 bytes. Collective; SW_E_NO_MEMORY on all alike. */
sw_status sw_bench_probe_ranks(MPI_Comm job, sw_bench_results *results, sw_error *err);

#endif
