/* What `bench redistribute` measures: transitions and collectives beside the bare MPI collective. */
#ifndef SW_CLI_MPI_BENCH_REDISTRIBUTE_H
#define SW_CLI_MPI_BENCH_REDISTRIBUTE_H

#include "cli-mpi/bench.h"
#include "shardwright/comm.h"

typedef struct sw_bench_limits {
    uint32_t n_rounds;
    uint64_t most_bytes; /* larger tensors are left out */
} sw_bench_limits;

/*
 * Measure over the tp group of `comm`, which has all ranks, two at least. `has_window`: whether they share a
 * host; without, what goes through a window is left out. Collective over `comm`. SW_E_NO_MEMORY.
 */
sw_status sw_bench_redistribute(sw_comm *comm, const sw_bench_limits *limits, sw_bench_results *results,
                                bool *has_window, sw_error *err);

#endif
