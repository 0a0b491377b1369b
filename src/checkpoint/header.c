/*
 * Walking a header that is known to be right. A file can change behind our back, so nothing is taken for
 * granted that could lead out of the map; what it says of offsets is for the visitor to compare.
 */
#include "checkpoint/header.h"

#include "base/arena.h"
#include "base/status.h"
#include "io/safetensors.h"

/* PREFIX: the header's length. */
enum { PREFIX = 8 };

#define SCRATCH_LIMIT ((size_t)512 << 20) /* decoded names and metadata of one header */

static void drop_arena(sw_arena **arena)
{
    sw_arena_destroy(*arena);
}

static uint64_t length_of(sw_file_map head)
{
    uint64_t length = 0;

    for (int i = PREFIX - 1; head.n_bytes >= PREFIX && i >= 0; i--)
        length = length << 8 | head.bytes[i];
    return length;
}

sw_status sw_header_map(sw_file_map *out, const char *path, uint64_t *file_bytes, uint64_t *data_begin,
                        sw_error *err)
{
    SW_TRY(sw_file_map_head(out, path, 4096, file_bytes, err));
    uint64_t length = length_of(*out);
    *data_begin = PREFIX + length;
    if (length > SW_SAFETENSORS_MAX_HEADER || PREFIX + length <= out->n_bytes)
        return SW_OK;
    sw_file_map_close(out);
    return sw_file_map_head(out, path, PREFIX + length, file_bytes, err);
}

static bool read_offsets(sw_json *json, sw_header_tensor *tensor)
{
    return sw_json_enter_array(json) && sw_json_next_element(json) && sw_json_u64(json, &tensor->begin) &&
           sw_json_next_element(json) && sw_json_u64(json, &tensor->end) && !sw_json_next_element(json) &&
           json->status == SW_OK;
}

static bool read_tensor(sw_json *json, sw_header_tensor *tensor)
{
    sw_json_text key;

    if (!sw_json_enter_object(json))
        return false;
    while (sw_json_next_key(json, &key)) {
        bool is_read = sw_json_text_is(key, "dtype")          ? sw_json_string(json, &tensor->dtype)
                       : sw_json_text_is(key, "data_offsets") ? read_offsets(json, tensor)
                                                              : sw_json_skip(json);
        if (!is_read)
            return json->status == SW_OK &&
                   sw_json_fail(json, "copy the file again", "a damaged tensor record");
    }
    return json->status == SW_OK;
}

static sw_status walk_meta(sw_json *json, const sw_header_visitor *visitor, sw_error *err)
{
    sw_json_text key;
    sw_json_text value;

    (void)sw_json_enter_object(json);
    while (sw_json_next_key(json, &key)) {
        if (!sw_json_raw_string(json, &value))
            break;
        if (visitor->on_meta != NULL)
            SW_TRY(visitor->on_meta(visitor->user, key, value, err));
    }
    return json->status;
}

sw_status sw_header_walk(sw_file_map head, uint64_t data_begin, const char *path,
                         const sw_header_visitor *visitor, sw_error *err)
{
    sw_arena *scratch SW_AUTO(drop_arena) = sw_arena_create(SCRATCH_LIMIT);
    sw_json json;
    sw_json_text name;

    if (scratch == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory for its header", path);
    if (data_begin < PREFIX || data_begin > head.n_bytes)
        return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                       path);
    sw_json_init(&json, head.bytes, (size_t)data_begin, path, scratch, err);
    json.at += PREFIX;
    (void)sw_json_enter_object(&json);
    while (sw_json_next_key(&json, &name)) {
        if (sw_json_text_is(name, "__metadata__")) {
            SW_TRY(walk_meta(&json, visitor, err));
            continue;
        }
        sw_header_tensor tensor = {.name = name};
        if (!read_tensor(&json, &tensor))
            break;
        if (visitor->on_tensor != NULL)
            SW_TRY(visitor->on_tensor(visitor->user, &tensor, err));
    }
    return json.status;
}
