/*
 * This rank's elements of the tensors of a checkpoint, be it a Hugging Face folder or a sharded one of
 * whatever mesh: only their bytes are read, and become what the net computes with. Nothing of nets is known
 * here.
 */
#ifndef SW_APPLY_LOCAL_H
#define SW_APPLY_LOCAL_H

#include "kernel/kernel.h"
#include "mesh/layout.h"

/* Of src/checkpoint. */
struct sw_store;
struct sw_mapped;

typedef struct sw_local_reader {
    struct sw_mapped *files; /* borrowed, and the kernel */
    const sw_kernel *kernel;
} sw_local_reader;

/* A checkpoint that is open for reading. */
typedef struct sw_local_files {
    struct sw_store *store;
    struct sw_mapped *files;
} sw_local_files; /* all zero is none */

/* Failures of sw_store_open(). */
sw_status sw_local_open(sw_local_files *out, const char *path, sw_error *err);
uint64_t sw_local_bytes_read(const sw_local_files *files);
void sw_local_close(sw_local_files *files);

/*
 * What the rank at `at` has of the tensor `name`, which is laid out so, as `dtype` at `to`. SW_E_FORMAT: it
 * is missing, of another shape, of a type that cannot be read so, or damaged; SW_E_IO.
 */
sw_status sw_local_read(const sw_local_reader *reader, const sw_tensor_layout *layout, sw_grid_coord at,
                        const char *name, sw_dtype dtype, void *to, sw_error *err);

/* All of a tensor of these extents, likewise. */
sw_status sw_local_read_whole(const sw_local_reader *reader, uint32_t n_dims, const uint64_t *dims,
                              const char *name, sw_dtype dtype, void *to, sw_error *err);

#endif
