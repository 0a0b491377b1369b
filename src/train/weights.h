/*
 * The tensors of a Hugging Face checkpoint by name, optimizer state included: where their bytes lie in the
 * mapped files, and those as floats. Nothing of nets is known here.
 */
#ifndef SW_TRAIN_WEIGHTS_H
#define SW_TRAIN_WEIGHTS_H

#include "kernel/kernel.h"
#include "model/model.h"

/* What checkpoint/store.h has; writers of checkpoints carry its small files along. */
struct sw_store;

typedef struct sw_weights {
    sw_model *model;
    struct sw_store *store;
    sw_file_map *maps; /* of the store's files; NULL once unmapped */
} sw_weights;          /* all zero is none */

/* SW_E_FORMAT: a sharded folder, or what sw_model_open() refuses. */
sw_status sw_weights_open(sw_weights *out, const char *path, sw_error *err);

/*
 * For ranks that each read their part (train/local.h): a sharded folder too; nothing is mapped, so that
 * sw_weights_find() finds nothing. SW_E_FORMAT: what sw_checkpoint_model() refuses.
 */
sw_status sw_weights_open_parts(sw_weights *out, const char *path, sw_error *err);
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
    const uint8_t *bytes; /* all of them are there; at no particular alignment */
} sw_weight;

/* *out gets the tensor of that name; *is_there false: there is none. SW_E_IO: its file has changed. */
sw_status sw_weights_find(const sw_weights *weights, const char *name, sw_weight *out, bool *is_there,
                          sw_error *err);

/* Can elements of `from` be read as `to`: the same, or from any float to F32 and F64? */
bool sw_weight_is_readable(sw_dtype from, sw_dtype to);

/* Its elements as `dtype`, for which it is readable, at `to`. */
void sw_weight_read(const sw_weight *weight, const sw_kernel *kernel, sw_dtype dtype, void *to);

#endif
