/*
 * Writing the safetensors format: a header from a list of tensors, then data by whoever holds it. Offsets
 * follow the order of the list, without holes; the header is padded with blanks so that data starts on a
 * multiple of 8. The header of a large file is never held as a whole: it is measured first, then written.
 */
#ifndef SW_IO_SAFETENSORS_WRITE_H
#define SW_IO_SAFETENSORS_WRITE_H

#include "base/sink.h"
#include "io/tensor_list.h"

enum { SW_SAFETENSORS_PREFIX = 8 }; /* bytes of the length in front of a header */

typedef struct sw_write_entry {
    const char *name;
    size_t name_length;
    const char *dtype; /* word of the format, kept for dtypes that we do not know */
    uint32_t n_dims;
    const uint64_t *dims;
    uint64_t n_bytes;
} sw_write_entry;

/* A key of __metadata__ and its text: `value`, or what `put` gives to a sink, which must be UTF-8 in pieces
 * of whole characters. */
typedef struct sw_write_meta {
    const char *key;
    const char *value;
    size_t value_length;
    sw_status (*put)(void *user, const sw_sink *into, sw_error *err);
} sw_write_meta;

typedef struct sw_write_header {
    void (*entry)(void *user, size_t i, sw_write_entry *out); /* its pointers are good until the next call */
    size_t n_entries;
    const sw_write_meta *meta;
    size_t n_meta;
    void *user; /* of `entry` and `put` */
} sw_write_header;

/*
 * Bytes of the header, its length in front included, and of the data section. SW_E_LIMIT: header above the
 * format's limit or offsets that overflow; SW_E_NO_MEMORY; what `put` fails with.
 */
sw_status sw_safetensors_measure(const sw_write_header *header, uint64_t *header_bytes, uint64_t *data_bytes,
                                 sw_error *err);

/* The length that stands in front of a header of so many bytes. */
void sw_safetensors_prefix(uint64_t header_bytes, char prefix[SW_SAFETENSORS_PREFIX]);

/* The text that follows the prefix, blanks included, to `sink`. Fails as measuring does, and as the sink. */
sw_status sw_safetensors_write(const sw_write_header *header, const sw_sink *sink, sw_error *err);

#endif
