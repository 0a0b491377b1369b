/*
 * The engine that moves all data: for each stored tensor of a target its bytes are produced in order from the
 * source parts that hold them, hashed on the way and written by 256 KiB and larger runs. The parts of one
 * tensor advance together, so that a row that several of them share is read once; threads take tensors in
 * turn. Memory is a few MiB a thread whatever the size of the model.
 */
#ifndef SW_CHECKPOINT_COPY_H
#define SW_CHECKPOINT_COPY_H

#include "checkpoint/target.h"
#include "shardwright/checkpoint.h"

typedef struct sw_copy_options {
    uint32_t threads; /* 0: two */
    bool no_sync;
    bool has_pick; /* of copies, take those of the files whose tp coordinate (without tp: ep) is `pick` */
    uint32_t pick;
    sw_progress_fn *on_progress;
    void *user;
} sw_copy_options;

typedef struct sw_copy_result {
    uint64_t bytes_read;    /* copied out of the source */
    uint64_t bytes_written; /* headers included */
} sw_copy_result;

/*
 * Write every file of `target` into `folder`, which exists and has none of them. Hashes are filled in. A
 * source part that is read whole is compared with its checksum, so that damage is not carried on:
 * SW_E_FORMAT. When on_progress stops the work: SW_E_IO, "stopped".
 */
sw_status sw_copy_run(const sw_store *source, sw_target *target, const char *folder,
                      const sw_copy_options *options, sw_copy_result *result, sw_error *err);

#endif
