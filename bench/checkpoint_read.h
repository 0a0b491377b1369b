/* The rows of the checkpoint benchmark that only read: verify against a plain read, ls of a large index. */
#ifndef SW_BENCH_CHECKPOINT_READ_H
#define SW_BENCH_CHECKPOINT_READ_H

#include "checkpoint/store.h"

/* verify of a sharded folder against 256 KiB reads of its files, by turns. True: the bar was missed. */
bool bench_verify(const sw_store *sharded, uint32_t n_rounds, uint32_t n_threads);

/* What `ls` does with an index of 100,000 tensors, which is written to `folder`. True: the bar was missed. */
bool bench_list_index(const char *folder, uint32_t n_rounds);

#endif
