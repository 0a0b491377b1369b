/*
 * Two checkpoints compared logically, whatever their layouts: tensors by name, then dtype, shape, bytes. Each
 * difference is a finding that names the parameter; the first element that differs is told by its index.
 */
#ifndef SW_CHECKPOINT_DIFF_H
#define SW_CHECKPOINT_DIFF_H

#include "checkpoint/store.h"
#include "shardwright/checkpoint.h"

typedef struct sw_diff {
    const sw_store *left;
    const sw_store *right;
    const sw_checkpoint_options *options;
    sw_report *report; /* gets every difference; may be NULL */
    bool
        is_proof; /* `left` must equal the model `right`: training state that only one has is no difference */
    uint64_t bytes_read;  /* filled */
    uint32_t n_tensors;   /* of both sides, each name once */
    uint32_t n_different; /* names */
} sw_diff;

/* SW_OK also when they differ: n_different says so. */
sw_status sw_diff_run(sw_diff *diff, sw_error *err);

#endif
