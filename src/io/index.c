/*
 * model.safetensors.index.json (format: io/index.h). Only the weight map is taken; other keys may hold
 * anything. A file name is used to build a path, so it must not be able to leave the folder.
 */
#include "io/index.h"

#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "base/text.h"
#include "io/json_read.h"

enum { LONGEST_FILE_NAME = 255, SHOWN = 100 };

typedef struct reader {
    sw_json json;
    sw_tensor_list *list;
    const char *path;
    sw_map files;      /* name → index in the list */
    sw_json_text last; /* neighbours in an index are mostly in the same file */
    uint32_t last_file;
    sw_error *err;
} reader;

static void clear_reader(reader *read)
{
    sw_map_clear(&read->files);
}

static int shown(sw_json_text text)
{
    return text.length < SHOWN ? (int)text.length : SHOWN;
}

bool sw_is_plain_file_name(const char *name, size_t length)
{
    if (length == 0 || length > LONGEST_FILE_NAME || (length == 1 && name[0] == '.'))
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool is_up = c == '.' && i + 1 < length && name[i + 1] == '.';
        if (c < 0x20 || c == 0x7f || c == '/' || c == '\\' || is_up)
            return false;
    }
    return sw_utf8_valid_prefix(name, length) == length;
}

static sw_status find_file(reader *read, sw_json_text name, uint32_t *out)
{
    bool is_new = false;

    if (read->last.bytes != NULL && read->last.length == name.length &&
        memcmp(read->last.bytes, name.bytes, name.length) == 0) {
        *out = read->last_file;
        return SW_OK;
    }
    if (!sw_is_plain_file_name(name.bytes, name.length)) {
        (void)sw_json_fail(&read->json, "files of an index stand beside it, by plain names",
                           "'%.*s' is not a plain file name", shown(name), name.bytes);
        return read->json.status;
    }
    uint32_t *file = sw_map_put(&read->files, name.bytes, name.length, UINT32_MAX, &is_new);
    if (file == NULL)
        return SW_FAIL(read->err, SW_E_NO_MEMORY, "", "%s: no memory for the names of its files", read->path);
    if (is_new) {
        char text[LONGEST_FILE_NAME + 1];
        memcpy(text, name.bytes, name.length);
        text[name.length] = '\0';
        SW_TRY(sw_tensor_list_add_file(read->list, text, file, read->err));
    }
    read->last = name;
    read->last_file = *file;
    *out = *file;
    return SW_OK;
}

static sw_status read_weight_map(reader *read)
{
    sw_json *json = &read->json;
    sw_json_text name;
    sw_json_text file_name;
    uint32_t file = 0;

    (void)sw_json_enter_object(json);
    while (sw_json_next_key(json, &name)) {
        if (!sw_json_string(json, &file_name))
            break;
        SW_TRY(find_file(read, file_name, &file));
        sw_status status = sw_tensor_list_add(read->list, name.bytes, name.length, SW_DTYPE_UNKNOWN, NULL,
                                              file, 0, read->err);
        if (status != SW_OK) {
            sw_error_context(read->err, "%s", read->path);
            return status;
        }
    }
    return json->status;
}

static sw_status read_metadata(sw_json *json)
{
    if (sw_json_peek(json) != SW_JSON_OBJECT)
        (void)sw_json_fail(json, "write the index again from the files' headers",
                           "metadata is not an object");
    (void)sw_json_skip(json);
    return json->status;
}

static sw_status read_document(reader *read)
{
    sw_json *json = &read->json;
    bool has_map = false;
    bool has_metadata = false;
    sw_json_text key;

    (void)sw_json_enter_object(json);
    while (sw_json_next_key(json, &key)) {
        bool is_map = sw_json_text_is(key, "weight_map");
        bool is_metadata = sw_json_text_is(key, "metadata");
        if ((is_map && has_map) || (is_metadata && has_metadata)) {
            (void)sw_json_fail(json, "write the index again from the files' headers", "'%s' stands twice",
                               is_map ? "weight_map" : "metadata");
        } else if (is_map) {
            SW_TRY(read_weight_map(read));
        } else if (is_metadata) {
            SW_TRY(read_metadata(json));
        } else {
            (void)sw_json_skip(json);
        }
        has_map = has_map || is_map;
        has_metadata = has_metadata || is_metadata;
    }
    if (sw_json_finish(json) && !has_map) {
        return SW_FAIL(read->err, SW_E_FORMAT, "an index maps every tensor to its file under 'weight_map'",
                       "%s: no 'weight_map'", read->path);
    }
    return json->status;
}

sw_status sw_index_read(sw_tensor_list *list, sw_file_map map, const char *path, sw_error *err)
{
    reader read SW_AUTO(clear_reader) = {.list = list, .path = path, .err = err};

    if (map.n_bytes > SW_INDEX_MAX_BYTES) {
        return SW_FAIL(err, SW_E_LIMIT, "check that this is an index", "%s: %zu bytes, at most %d are read",
                       path, map.n_bytes, SW_INDEX_MAX_BYTES);
    }
    if (sw_file_is_lfs_pointer(map)) {
        return SW_FAIL(err, SW_E_FORMAT, "run 'git lfs pull' to get the data",
                       "%s: is a Git LFS pointer, not the file itself", path);
    }
    sw_json_init(&read.json, map.bytes, map.n_bytes, path, list->arena, err);
    return read_document(&read);
}
