/*
 * Inputs of the benchmarks, written by code so that a fresh clone needs nothing else: lists of parameters
 * with the names and shapes of real models, as a folder with config.json and params.tsv, or with a
 * safetensors file that has its true size and no data (a hole).
 */
#ifndef SW_BENCH_INPUTS_H
#define SW_BENCH_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

/* How a list is stored. */
typedef enum bench_form { BENCH_TSV, BENCH_SAFETENSORS } bench_form;

/* What a list is like. */
typedef enum bench_model {
    BENCH_DENSE,       /* 32 layers, 291 names */
    BENCH_DEEPSEEK,    /* DeepSeek-V3: 61 layers and an MTP layer, 256 experts, FP8 with block scales, 91,991
                          names */
    BENCH_MANY_EXPERTS /* 61 layers of GPTQ experts, three tensors a projection: as many names as wanted */
} bench_model;

/*
 * Write the folder `folder` (created if absent).
 *
 * n_names  for BENCH_MANY_EXPERTS: about how many names; experts are added until it is reached
 * returns  the number of names written; 0 on failure, which has been reported on stderr
 */
uint64_t bench_write_input(const char *folder, bench_model model, bench_form form, uint64_t n_names);

#endif
