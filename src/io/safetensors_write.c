/*
 * The header of a safetensors file (io/safetensors_write.h), written in one go. Invariant: what is written
 * here passes our own strict reader, whatever the names are.
 */
#include "io/safetensors_write.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/status.h"
#include "io/json_write.h"
#include "io/safetensors.h"

enum { PREFIX = 8, ALIGNMENT = 8 };

static void put_meta(sw_json_writer *writer, const sw_write_meta *meta, size_t n_meta)
{
    if (n_meta == 0)
        return;
    sw_json_key(writer, "__metadata__");
    sw_json_begin_object(writer);
    for (size_t i = 0; i < n_meta; i++) {
        sw_json_key(writer, meta[i].key);
        sw_json_put_string_n(writer, meta[i].value, meta[i].value_length);
    }
    sw_json_end_object(writer);
}

static void put_entry(sw_json_writer *writer, const sw_write_entry *entry)
{
    sw_json_key_n(writer, entry->name, entry->name_length);
    sw_json_begin_object(writer);
    sw_json_key(writer, "dtype");
    sw_json_put_string(writer, entry->dtype);
    sw_json_key(writer, "shape");
    sw_json_begin_array(writer);
    for (uint32_t d = 0; d < entry->n_dims; d++)
        sw_json_put_u64(writer, entry->dims[d]);
    sw_json_end_array(writer);
    sw_json_key(writer, "data_offsets");
    sw_json_begin_array(writer);
    sw_json_put_u64(writer, entry->begin);
    sw_json_put_u64(writer, entry->begin + entry->n_bytes);
    sw_json_end_array(writer);
    sw_json_end_object(writer);
}

static sw_status place_entries(sw_write_entry *entries, size_t n_entries, uint64_t *data_bytes, sw_error *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < n_entries; i++) {
        entries[i].begin = at;
        if (!sw_add_u64(at, entries[i].n_bytes, &at)) {
            return SW_FAIL(err, SW_E_LIMIT, "write fewer tensors a file",
                           "tensor '%.100s': %" PRIu64 " bytes of data after %" PRIu64 " are too many",
                           entries[i].name, entries[i].n_bytes, entries[i].begin);
        }
    }
    *data_bytes = at;
    return SW_OK;
}

/* The length in front of the header that follows `start`, once all of it is there. */
static void set_prefix(char *start, uint64_t header_bytes)
{
    for (int i = 0; i < PREFIX; i++)
        start[i] = (char)(unsigned char)(header_bytes >> (8 * i) & 0xff);
}

sw_status sw_safetensors_header(sw_buffer *out, sw_write_entry *entries, size_t n_entries,
                                const sw_write_meta *meta, size_t n_meta, uint64_t *data_bytes, sw_error *err)
{
    static const char no_length[PREFIX];
    size_t start = out->length;
    sw_json_writer writer;

    SW_TRY(place_entries(entries, n_entries, data_bytes, err));
    sw_buffer_append(out, no_length, PREFIX);
    sw_json_write_init(&writer, out, true);
    sw_json_begin_object(&writer);
    put_meta(&writer, meta, n_meta);
    for (size_t i = 0; i < n_entries; i++)
        put_entry(&writer, &entries[i]);
    sw_json_end_object(&writer);
    while ((out->length - start) % ALIGNMENT != 0 && !out->failed)
        sw_buffer_putc(out, ' ');
    if (out->failed)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a header of %zu tensors", n_entries);

    uint64_t header_bytes = out->length - start - PREFIX;
    if (header_bytes > SW_SAFETENSORS_MAX_HEADER) {
        return SW_FAIL(err, SW_E_LIMIT, "write fewer tensors a file",
                       "header of %" PRIu64 " bytes for %zu tensors, the format allows %d", header_bytes,
                       n_entries, SW_SAFETENSORS_MAX_HEADER);
    }
    set_prefix(out->bytes + start, header_bytes);
    return SW_OK;
}
