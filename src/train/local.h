/*
 * This rank's elements of the tensors of a checkpoint, be it a Hugging Face folder or a sharded one of
 * whatever mesh: only their bytes are read, and become what the net computes with. Nothing of nets is known
 * here.
 */
#ifndef SW_TRAIN_LOCAL_H
#define SW_TRAIN_LOCAL_H

#include "mesh/layout.h"
#include "train/weights.h"

typedef struct sw_local_reader sw_local_reader;

/* Both are borrowed. SW_E_NO_MEMORY. */
sw_status sw_local_reader_create(sw_local_reader **out, const sw_weights *weights, const sw_kernel *kernel,
                                 sw_error *err);
void sw_local_reader_destroy(sw_local_reader *reader); /* NULL is fine */

/*
 * What the rank at `at` has of the tensor `name`, which is laid out so, as `dtype` at `to`. SW_E_FORMAT: it
 * is missing, of another shape, or of a type that cannot be read so; SW_E_IO.
 */
sw_status sw_local_read(sw_local_reader *reader, const sw_tensor_layout *layout, sw_grid_coord at,
                        const char *name, sw_dtype dtype, void *to, sw_error *err);

#endif
