/* The tensors of a checkpoint where they lie: files are mapped, nothing is read. Knows nothing of nets. */
#ifndef SW_APPLY_FILES_H
#define SW_APPLY_FILES_H

#include "base/file.h"
#include "shardwright/model.h"

struct sw_store; /* checkpoint/store.h */

typedef struct sw_files {
    struct sw_store *store;
    sw_file_map *maps; /* one a file */
} sw_files;            /* all zero is none */

/* A Hugging Face folder or file. SW_E_FORMAT: a sharded folder, or what opening refuses; SW_E_IO. */
sw_status sw_files_open(sw_files *out, const char *path, sw_error *err);
void sw_files_close(sw_files *files);

typedef struct sw_file_tensor {
    sw_dtype dtype;
    const char *dtype_word; /* as its file has it */
    uint32_t n_dims;
    const uint64_t *dims;
    const uint8_t *bytes; /* at no particular alignment */
} sw_file_tensor;

/* SW_E_FORMAT: there is none of this name; SW_E_IO: its file has changed. */
sw_status sw_files_find(const sw_files *files, const char *name, sw_file_tensor *out, sw_error *err);

#endif
