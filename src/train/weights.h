/*
 * A checkpoint that nets are loaded from, a Hugging Face folder or a sharded one of whatever mesh: its model,
 * and its tensors by name, optimizer state included, where their bytes lie in the mapped files. Nothing of
 * nets is known here.
 */
#ifndef SW_TRAIN_WEIGHTS_H
#define SW_TRAIN_WEIGHTS_H

#include "kernel/kernel.h"
#include "model/model.h"

/* Of src/checkpoint; writers of checkpoints carry the small files of a store along. */
struct sw_store;
struct sw_mapped;

typedef struct sw_weights {
    sw_model *model;
    struct sw_store *store;
    struct sw_mapped *files; /* NULL once unmapped */
} sw_weights;                /* all zero is none */

/* Failures of sw_checkpoint_model(). No tensor's bytes are looked at. */
sw_status sw_weights_open(sw_weights *out, const char *path, sw_error *err);

/* The same, or a config alone, whose model has names and shapes and nothing to read: `store` is NULL. */
sw_status sw_weights_open_described(sw_weights *out, const char *path, sw_error *err);
void sw_weights_close(sw_weights *weights);

/* What was read is no longer needed: files can go. */
void sw_weights_unmap(sw_weights *weights);

const char *sw_weights_path(const sw_weights *weights);

/* Scalars of the run that wrote it, a JSON object; NULL: none. */
const char *sw_weights_state(const sw_weights *weights, size_t *length);

/* One tensor. */
typedef struct sw_weight {
    const char *name;
    sw_dtype dtype;
    const char *dtype_word; /* as its file has it */
    uint64_t n_elems;
    const uint8_t *bytes; /* all of them are there; at no particular alignment; NULL: in parts */
} sw_weight;

/* *out gets the tensor of that name; *is_there false: there is none. Failures of sw_mapped_lend(). */
sw_status sw_weights_find(const sw_weights *weights, const char *name, sw_weight *out, bool *is_there,
                          sw_error *err);

/* Can elements of `from` be read as `to`: the same, or from any float to F32 and F64? */
bool sw_weight_is_readable(sw_dtype from, sw_dtype to);

/* Its elements as `dtype`, for which it is readable, at `to`. */
void sw_weight_read(const sw_weight *weight, const sw_kernel *kernel, sw_dtype dtype, void *to);

#endif
