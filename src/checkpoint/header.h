/*
 * A safetensors header once more, after sw_safetensors_read() has checked it: what the list of tensors does
 * not keep (metadata, words of dtypes, where the data of each tensor ends).
 */
#ifndef SW_CHECKPOINT_HEADER_H
#define SW_CHECKPOINT_HEADER_H

#include "base/file.h"
#include "io/json_read.h"

/* One tensor of a header. */
typedef struct sw_header_tensor {
    sw_json_text name;
    sw_json_text dtype;
    uint64_t begin; /* from the start of the data section */
    uint64_t end;
} sw_header_tensor;

/* Who wants to know. Either function may be NULL; texts are good during the call. A value of the metadata can
 * be as large as the header: it comes with its escapes in it (sw_json_decode()), and is good as long as the
 * map. */
typedef struct sw_header_visitor {
    void *user;
    sw_status (*on_meta)(void *user, sw_json_text key, sw_json_text raw, sw_error *err);
    sw_status (*on_tensor)(void *user, const sw_header_tensor *tensor, sw_error *err);
} sw_header_visitor;

/*
 * Map the beginning of a file so that its whole header is there; *file_bytes gets its size, *data_begin where
 * its data starts. Says nothing of what is wrong with a header: sw_safetensors_read() does.
 */
sw_status sw_header_map(sw_file_map *out, const char *path, uint64_t *file_bytes, uint64_t *data_begin,
                        sw_error *err);

/* Visit the metadata and the tensors in the order of the header. SW_E_FORMAT when it is not a header. */
sw_status sw_header_walk(sw_file_map head, uint64_t data_begin, const char *path,
                         const sw_header_visitor *visitor, sw_error *err);

#endif
