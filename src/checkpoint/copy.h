/*
 * The engine that moves all data: for each stored tensor of a target its bytes are produced in order,
 * assembled from the source parts that hold them, hashed on the way and written by 256 KiB and larger runs.
 * One thread a target file, a few at a time; memory is a few buffers whatever the size of the model.
 */
#ifndef SW_CHECKPOINT_COPY_H
#define SW_CHECKPOINT_COPY_H

#include "checkpoint/target.h"
#include "shardwright/checkpoint.h"

typedef struct sw_copy_options {
    uint32_t threads;
    bool no_sync;
    bool has_pick;
    uint32_t pick;
    sw_progress_fn *on_progress;
    void *user;
} sw_copy_options;

typedef struct sw_copy_result {
    uint64_t bytes_read; /* copied out of the source */
    uint64_t bytes_written;
} sw_copy_result;

/* Write every file of `target` into `folder`, which exists and is empty. Hashes are filled in. */
sw_status sw_copy_run(sw_store *source, sw_target *target, const char *folder, const sw_copy_options *options,
                      sw_copy_result *result, sw_error *err);

/*
 * Produce the bytes of one part of a source tensor in order, in pieces of bounded size: the inner loop of the
 * engine, also used to compare (verify, diff). `sink` gets consecutive bytes; it returns a status that ends
 * the walk.
 */
typedef sw_status sw_copy_sink_fn(void *user, const void *bytes, size_t n_bytes, sw_error *err);
sw_status sw_copy_walk(sw_store *source, const sw_store_tensor *tensor, const sw_part *part,
                       uint32_t pick_file, sw_copy_sink_fn *sink, void *user, sw_error *err);

#endif
