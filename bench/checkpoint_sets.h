/*
 * What the checkpoint benchmark reads and writes: a Llama-shaped model in the Hugging Face layout, written by
 * code with data in it, and sets of files in which every tensor is cut along one dim, made without a plan, so
 * that each kind of cut can be measured alone.
 */
#ifndef SW_BENCH_CHECKPOINT_SETS_H
#define SW_BENCH_CHECKPOINT_SETS_H

#include "checkpoint/copy.h"

/* Print what went wrong and end the program. */
_Noreturn void bench_die(const char *doing, const sw_error *err);

/* Write `folder`: config.json and four .safetensors files with an index, synced and in the page cache. */
void bench_write_model(const char *folder, uint32_t n_layers);

/* Every tensor of the store cut along `dim` (its last one when it has fewer) into a file each. */
sw_target *bench_cut(const sw_store *source, uint32_t n_files, uint32_t dim);

/* The files of a target that were written to `folder`, as a store of the same tensors. */
sw_store *bench_store_of(const sw_store *source, const sw_target *target, const char *folder);

#endif
