/*
 * Writing the files of a model that is made: chunk by chunk on a few threads, each with one buffer, so memory
 * does not grow with the model. No byte depends on which thread wrote it or when.
 */
#ifndef SW_CHECKPOINT_INIT_WRITE_H
#define SW_CHECKPOINT_INIT_WRITE_H

#include "checkpoint/init_scale.h"
#include "checkpoint/target.h"
#include "shardwright/checkpoint.h"

/*
 * Write every file of `target` into `folder`, which exists and has none of them, and sync them unless
 * options->no_sync. The target's parts are whole tensors of `store`, of dtype F32, BF16 or F16.
 */
sw_status sw_init_write(const sw_target *target, const sw_store *store, const sw_init_scale *scale,
                        uint64_t seed, const char *folder, const sw_checkpoint_options *options,
                        sw_error *err);

#endif
