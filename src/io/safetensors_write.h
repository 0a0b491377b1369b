/*
 * Writing the safetensors format: a header from a list of tensors, then data by whoever holds it. Offsets
 * follow the order of the list, without holes; the header is padded with blanks so that data starts on a
 * multiple of 8.
 */
#ifndef SW_IO_SAFETENSORS_WRITE_H
#define SW_IO_SAFETENSORS_WRITE_H

#include "base/buffer.h"
#include "io/tensor_list.h"

typedef struct sw_write_entry {
    const char *name;
    size_t name_length;
    const char *dtype; /* word of the format, kept for dtypes that we do not know */
    uint32_t n_dims;
    const uint64_t *dims;
    uint64_t n_bytes;
    uint64_t begin; /* filled: first byte from the start of the data section */
} sw_write_entry;

/* key and value strings of __metadata__ */
typedef struct sw_write_meta {
    const char *key;
    const char *value;
    size_t value_length;
} sw_write_meta;

/*
 * Append the 8-byte length and the header to `out` and fill every `begin`. *data_bytes gets the size of the
 * data section. SW_E_LIMIT: header above the format's limit or offsets that overflow; SW_E_NO_MEMORY.
 */
sw_status sw_safetensors_header(sw_buffer *out, sw_write_entry *entries, size_t n_entries,
                                const sw_write_meta *meta, size_t n_meta, uint64_t *data_bytes,
                                sw_error *err);

#endif
