/* What the machine can do before a run and after it (cli-mpi/bench.h). */
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/status.h"
#include "cli-mpi/bench.h"
#include "comm/agree.h"
#include "kernel/probe.h"

enum { TRIES = 7, ROOM_BYTES = 64 << 20, RANK_BYTES = 16 << 20, SUMS = 1000 };

/* ---- memory ---- */

enum { HUGE_PAGE = 2 << 20 };

sw_status sw_bench_room_make(sw_bench_room *out, size_t n_bytes, sw_error *err)
{
    char *block = sw_alloc(n_bytes + HUGE_PAGE);

    if (block == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu MiB of numbers", n_bytes >> 20);
    out->block = block;
    out->memory = block + (HUGE_PAGE - (uintptr_t)block % HUGE_PAGE) % HUGE_PAGE;
    (void)madvise(out->memory, n_bytes, MADV_HUGEPAGE);
    float *values = (float *)(void *)out->memory;
    for (size_t i = 0; i < n_bytes / sizeof *values; i++)
        values[i] = (float)(i % 251) / 251 - 0.5F;
    return SW_OK;
}

void sw_bench_room_clear(sw_bench_room *room)
{
    sw_free(room->block);
}

/* ---- cores ---- */

typedef struct room {
    const sw_kernel *kernel;
    char *memory; /* two of ROOM_BYTES */
} room;

static void peak(const room *r)
{
    sw_probe_peak(r->kernel);
}

static void read_all(const room *r)
{
    sw_probe_read(r->kernel, r->memory, (size_t)2 * ROOM_BYTES);
}

static void copy_half(const room *r)
{
    sw_probe_copy(r->kernel, r->memory, r->memory + ROOM_BYTES, ROOM_BYTES);
}

/* The best of some tries, for what else the machine does only adds to a time. */
static double best_seconds(void (*run)(const room *r), const room *r)
{
    double best = 0;

    run(r);
    for (int i = 0; i < TRIES; i++) {
        double begin = MPI_Wtime();
        run(r);
        double seconds = MPI_Wtime() - begin;
        best = i == 0 || seconds < best ? seconds : best;
    }
    return best;
}

static double best_line(const sw_kernel *kernel)
{
    double best = 0;

    for (int i = 0; i < TRIES; i++) {
        double seconds = sw_probe_line(kernel);
        best = best == 0 || (seconds > 0 && seconds < best) ? seconds : best;
    }
    return best;
}

sw_status sw_bench_probe_cores(const sw_kernel *kernel, sw_bench_results *results, sw_error *err)
{
    sw_bench_room memory SW_AUTO(sw_bench_room_clear) = {0};

    SW_TRY(sw_bench_room_make(&memory, (size_t)2 * ROOM_BYTES, err));
    room r = {kernel, memory.memory};
    sw_bench_note(results, "peak", "GFLOP/s", sw_probe_peak_flops(kernel) / best_seconds(peak, &r) / 1e9);
    sw_bench_note(results, "read", "GB/s", 2e-9 * ROOM_BYTES / best_seconds(read_all, &r));
    sw_bench_note(results, "copy", "GB/s", 2e-9 * ROOM_BYTES / best_seconds(copy_half, &r));
    double line = best_line(kernel);
    if (line > 0)
        sw_bench_note(results, "line between cores", "ns", line * 1e9);
    return SW_OK;
}

/* ---- ranks ---- */

/* Seconds of the slowest rank. */
static double copy_by_all(MPI_Comm job, char *memory)
{
    MPI_Barrier(job);
    double begin = MPI_Wtime();
    memcpy(memory, memory + RANK_BYTES, RANK_BYTES);
    double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, job);
    return seconds;
}

static double sum_by_all(MPI_Comm job)
{
    double value = 1;

    MPI_Barrier(job);
    double begin = MPI_Wtime();
    for (int i = 0; i < SUMS; i++)
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, job);
    double seconds = (MPI_Wtime() - begin) / SUMS;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, job);
    return seconds;
}

sw_status sw_bench_probe_ranks(MPI_Comm job, sw_bench_results *results, sw_error *err)
{
    sw_bench_room memory SW_AUTO(sw_bench_room_clear) = {0};
    double copy = 0;
    double sum = 0;
    int ranks = 0;

    SW_TRY(sw_agree_over(job, sw_bench_room_make(&memory, (size_t)2 * RANK_BYTES, err), err));
    for (int i = 0; i <= TRIES; i++) { /* the first one is not counted */
        double now[] = {copy_by_all(job, memory.memory), sum_by_all(job)};
        copy = i < 2 || now[0] < copy ? now[0] : copy;
        sum = i < 2 || now[1] < sum ? now[1] : sum;
    }
    MPI_Comm_size(job, &ranks);
    sw_bench_note(results, "copy", "GB/s", 2e-9 * RANK_BYTES * ranks / copy);
    sw_bench_note(results, "sum of 8 bytes", "us", sum * 1e6);
    return SW_OK;
}
