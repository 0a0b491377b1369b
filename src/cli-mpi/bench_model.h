/*
 * What `bench model` measures: a whole model that reads a prompt, writes a text and is trained, beside
 * multiply-adds in registers and plain reads of the same memory (kernel/probe.h).
 */
#ifndef SW_CLI_MPI_BENCH_MODEL_H
#define SW_CLI_MPI_BENCH_MODEL_H

#include "cli-mpi/bench_ops.h"

/*
 * All rows of the table that `limits` leaves, of the model that `path` describes (its config.json counts,
 * weights are random); NULL: the sizes of SmolLM-135M. SW_E_FORMAT: what cannot be run; SW_E_ARGUMENT: no row
 * has the text, a model with experts; SW_E_LIMIT: a steady step has allocated memory.
 */
sw_status sw_bench_model(sw_kernel *kernel, const char *path, const sw_ops_limits *limits,
                         sw_bench_results *results, sw_error *err);

#endif
