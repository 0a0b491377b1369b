/*
 * A Hugging Face folder written from memory: tensors as they are given, the config and the small files of the
 * checkpoint that they came from, optimizer state and scalars of the training beside them. It appears at
 * once, whole. Nothing of nets is known here.
 */
#ifndef SW_TRAIN_FOLDER_H
#define SW_TRAIN_FOLDER_H

#include "base/buffer.h"
#include "shardwright/comm.h"
#include "train/weights.h"

typedef struct sw_folder_tensor {
    const char *name;
    uint32_t n_dims;
    const uint64_t *dims; /* of the whole */
    const void *data;     /* row-major; of several ranks, what this one has by the plan */
    uint32_t
        state_of; /* number of the parameter whose optimizer state it is; UINT32_MAX: it is a parameter */
} sw_folder_tensor;

typedef struct sw_folder {
    const sw_folder_tensor *tensors;
    uint32_t n_tensors;
    sw_dtype dtype;           /* of all of them */
    const sw_weights *origin; /* whose config and small files are carried */
    const sw_buffer *state;   /* training_state.json */
} sw_folder;

/* An existing checkpoint at `out` is exchanged for the new one if `replace`, and refused otherwise. */
sw_status sw_folder_write(const sw_folder *folder, const char *out, bool replace, sw_error *err);

/*
 * The same by all ranks of a plan of that model, whatever its dtype: a sharded folder, of which each writes
 * the file of its coordinate, and rank 0 what is small. Collective.
 */
sw_status sw_folder_write_parts(const sw_folder *folder, const sw_plan *plan, sw_comm *comm, const char *out,
                                bool replace, sw_error *err);

#endif
