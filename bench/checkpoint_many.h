/* The row of the checkpoint benchmark about memory: a model of very many small tensors. */
#ifndef SW_BENCH_CHECKPOINT_MANY_H
#define SW_BENCH_CHECKPOINT_MANY_H

#include <stdbool.h>

/* Anonymous memory of shard, verify, merge and reshard with 1.6 million stored parts, in files below
 * `folder`, which is made and removed. True: the bar was missed. */
bool bench_many_tensors(const char *folder, double bar_mib);

#endif
