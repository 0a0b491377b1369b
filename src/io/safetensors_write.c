/*
 * The header of a safetensors file (io/safetensors_write.h). Invariant: what is written here passes our own
 * strict reader, whatever the names are.
 */
#include "io/safetensors_write.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/status.h"
#include "io/json_write.h"
#include "io/safetensors.h"

enum { ALIGNMENT = 8 };

/* Counts what goes on to a sink, or to nobody. */
typedef struct counter {
    const sw_sink *next;
    uint64_t n_bytes;
} counter;

static sw_status count(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    counter *c = user;

    c->n_bytes += n_bytes;
    return c->next == NULL ? SW_OK : c->next->take(c->next->user, bytes, n_bytes, err);
}

static sw_status add_part(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    sw_json_writer *writer = user;

    (void)err;
    sw_json_string_part(writer, bytes, n_bytes);
    return writer->status;
}

static sw_status put_meta(sw_json_writer *writer, const sw_write_header *header, sw_error *err)
{
    const sw_sink value = {add_part, writer};

    if (header->n_meta == 0)
        return SW_OK;
    sw_json_key(writer, "__metadata__");
    sw_json_begin_object(writer);
    for (size_t i = 0; i < header->n_meta; i++) {
        const sw_write_meta *meta = &header->meta[i];
        sw_json_key(writer, meta->key);
        if (meta->put == NULL) {
            sw_json_put_string_n(writer, meta->value, meta->value_length);
            continue;
        }
        sw_json_begin_string(writer);
        SW_TRY(meta->put(header->user, &value, err));
        sw_json_end_string(writer);
    }
    sw_json_end_object(writer);
    return SW_OK;
}

static void put_entry(sw_json_writer *writer, const sw_write_entry *entry, uint64_t begin, uint64_t end)
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
    sw_json_put_u64(writer, begin);
    sw_json_put_u64(writer, end);
    sw_json_end_array(writer);
    sw_json_end_object(writer);
}

static sw_status put_entries(sw_json_writer *writer, const sw_write_header *header, uint64_t *data_bytes,
                             sw_error *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < header->n_entries; i++) {
        sw_write_entry entry;
        uint64_t end = 0;
        header->entry(header->user, i, &entry);
        if (!sw_add_u64(at, entry.n_bytes, &end)) {
            return SW_FAIL(err, SW_E_LIMIT, "write fewer tensors a file",
                           "tensor '%.100s': %" PRIu64 " bytes of data after %" PRIu64 " are too many",
                           entry.name, entry.n_bytes, at);
        }
        put_entry(writer, &entry, at, end);
        at = end;
    }
    *data_bytes = at;
    return SW_OK;
}

static sw_status put_text(const sw_write_header *header, counter *to, uint64_t *data_bytes, sw_error *err)
{
    static const char blanks[] = "        ";
    const sw_sink sink = {count, to};
    sw_buffer room SW_AUTO(sw_buffer_clear) = {0};
    sw_json_writer writer;

    sw_json_write_to(&writer, &room, true, &sink, err);
    sw_json_begin_object(&writer);
    SW_TRY(put_meta(&writer, header, err));
    SW_TRY(put_entries(&writer, header, data_bytes, err));
    sw_json_end_object(&writer);
    SW_TRY(sw_json_write_end(&writer));
    if (to->n_bytes % ALIGNMENT != 0)
        SW_TRY(count(to, blanks, (size_t)(ALIGNMENT - to->n_bytes % ALIGNMENT), err));
    if (to->n_bytes > SW_SAFETENSORS_MAX_HEADER) {
        return SW_FAIL(err, SW_E_LIMIT, "write fewer tensors a file",
                       "header of %" PRIu64 " bytes for %zu tensors, the format allows %d", to->n_bytes,
                       header->n_entries, SW_SAFETENSORS_MAX_HEADER);
    }
    return SW_OK;
}

sw_status sw_safetensors_measure(const sw_write_header *header, uint64_t *header_bytes, uint64_t *data_bytes,
                                 sw_error *err)
{
    counter all = {0};

    SW_TRY(put_text(header, &all, data_bytes, err));
    *header_bytes = SW_SAFETENSORS_PREFIX + all.n_bytes;
    return SW_OK;
}

void sw_safetensors_prefix(uint64_t header_bytes, char prefix[SW_SAFETENSORS_PREFIX])
{
    uint64_t length = header_bytes - SW_SAFETENSORS_PREFIX;

    for (int i = 0; i < SW_SAFETENSORS_PREFIX; i++)
        prefix[i] = (char)(unsigned char)(length >> (8 * i) & 0xff);
}

sw_status sw_safetensors_write(const sw_write_header *header, const sw_sink *sink, sw_error *err)
{
    counter to = {.next = sink};
    uint64_t data_bytes = 0;

    return put_text(header, &to, &data_bytes, err);
}
