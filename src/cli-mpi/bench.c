/* Rounds and their middle (cli-mpi/bench.h). */
#include "cli-mpi/bench.h"

#include <stdlib.h>

/* A round lasts as long as the clock needs to be trusted, and not for ever. */
enum { MOST_CALLS = 256 };
static const double round_seconds = 1e-3;

static double time_of(void (*run)(void *what), void *what, uint32_t n_calls, MPI_Comm job)
{
    MPI_Barrier(job);
    double begin = MPI_Wtime();
    for (uint32_t i = 0; i < n_calls; i++)
        run(what);
    return (MPI_Wtime() - begin) / n_calls;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return values[n / 2];
}

void sw_bench_middle(sw_bench_figures *out, double *ours, double *bare, uint32_t n_rounds)
{
    double ratios[SW_BENCH_MOST_ROUNDS];

    for (uint32_t r = 0; r < n_rounds; r++)
        ratios[r] = ours[r] / bare[r];
    out->ours = middle(ours, n_rounds);
    out->bare = middle(bare, n_rounds);
    out->ratio = middle(ratios, n_rounds);
}

static uint32_t calls_for(double seconds)
{
    double n = round_seconds / seconds;
    return n >= MOST_CALLS ? MOST_CALLS : n < 1 ? 1 : (uint32_t)n;
}

void sw_bench_measure(sw_bench_figures *out, const sw_bench_pair *pair, uint32_t n_rounds, MPI_Comm job)
{
    double times[2][SW_BENCH_MOST_ROUNDS]; /* ours, bare */
    double first[2];
    uint32_t n_calls[2];

    for (int warm = 0; warm < 2; warm++) {
        first[0] = time_of(pair->ours, pair->what, 2, job);
        first[1] = time_of(pair->bare, pair->what, 2, job);
    }
    MPI_Allreduce(MPI_IN_PLACE, first, 2, MPI_DOUBLE, MPI_MAX, job);
    n_calls[0] = calls_for(first[0]);
    n_calls[1] = calls_for(first[1]);
    for (uint32_t r = 0; r < n_rounds; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t side = (r + i) % 2; /* each begins every second round */
            times[side][r] = time_of(side == 0 ? pair->ours : pair->bare, pair->what, n_calls[side], job);
        }
    }
    for (uint32_t side = 0; side < 2; side++)
        MPI_Allreduce(MPI_IN_PLACE, times[side], (int)n_rounds, MPI_DOUBLE, MPI_MAX, job);
    sw_bench_middle(out, times[0], times[1], n_rounds);
}
