/*
 * Header of a safetensors file (docs: io/safetensors.h). The JSON is read in one pass straight into the list;
 * where each tensor's bytes lie is kept aside and checked at the end: sorted by begin, the ranges must follow
 * one another without hole or overlap from 0 to the end of the data.
 */
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "io/json_read.h"

/* PREFIX: the header's length. PEEK: enough to tell a Git LFS pointer. SHOWN: bytes of a name in a message.
 */
enum { PREFIX = 8, PEEK = 64, SHOWN = 150 };

enum { USUAL_RECORD = 128 }; /* bytes of header a tensor takes in real files, to guess their number */

typedef struct span {
    uint64_t begin;
    uint64_t end;
    uint32_t tensor; /* index in the list */
} span;

typedef struct reader {
    sw_json json;
    sw_tensor_list *list;
    const char *path;
    uint32_t file;
    uint64_t data_bytes;
    span *spans;
    size_t n_spans;
    size_t capacity;
    bool is_sorted; /* the spans so far stand in the order of their data */
    sw_error *err;
} reader;

/* The members of one tensor's object. */
typedef struct record {
    sw_json_text name;
    sw_dtype dtype;
    sw_json_text dtype_word;
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims;
    uint64_t begin;
    uint64_t end;
} record;

static void clear_reader(reader *read)
{
    sw_free(read->spans);
}

static int shown(sw_json_text name)
{
    return name.length < SHOWN ? (int)name.length : SHOWN;
}

static bool read_dtype(reader *read, record *tensor)
{
    sw_json_text word;

    if (!sw_json_string(&read->json, &word))
        return false;
    tensor->dtype = sw_dtype_of(word.bytes, word.length);
    tensor->dtype_word = word;
    return true;
}

static bool read_shape(reader *read, record *tensor)
{
    if (!sw_json_enter_array(&read->json))
        return false;
    while (sw_json_next_element(&read->json)) {
        uint64_t extent = 0;
        if (!sw_json_u64(&read->json, &extent))
            return false;
        if (tensor->n_dims < SW_MAX_DIMS) /* the list refuses a shape with more */
            tensor->dims[tensor->n_dims] = extent;
        tensor->n_dims++;
    }
    return read->json.status == SW_OK;
}

static bool read_offsets(reader *read, record *tensor)
{
    sw_json *json = &read->json;
    uint64_t *const ends[] = {&tensor->begin, &tensor->end};
    size_t n_read = 0;

    if (!sw_json_enter_array(json))
        return false;
    while (sw_json_next_element(json)) {
        uint64_t beyond = 0;
        if (!sw_json_u64(json, n_read < SW_COUNT(ends) ? ends[n_read] : &beyond))
            return false;
        n_read++;
    }
    if (json->status == SW_OK && n_read != SW_COUNT(ends)) {
        return sw_json_fail(json, "data_offsets are [begin, end]", "tensor '%.*s': %zu data_offsets, not 2",
                            shown(tensor->name), tensor->name.bytes, n_read);
    }
    return json->status == SW_OK;
}

typedef struct member {
    const char *key;
    bool (*read)(reader *read, record *tensor);
} member;

static const member members[] = {
    {"dtype",        read_dtype  },
    {"shape",        read_shape  },
    {"data_offsets", read_offsets},
};

static const char record_help[] =
    "a tensor has 'dtype', 'shape' and 'data_offsets', each once; write the file again";

/* Index of a key in the table, SW_COUNT(members) for others. Writers keep one order: look at `likely` first.
 */
static size_t find_member(sw_json_text key, size_t likely)
{
    if (likely < SW_COUNT(members) && sw_json_text_is(key, members[likely].key))
        return likely;
    size_t i = 0;
    while (i < SW_COUNT(members) && !sw_json_text_is(key, members[i].key))
        i++;
    return i;
}

/* The object of one tensor: each member of the table once and nothing else. */
static bool read_record(reader *read, record *tensor)
{
    sw_json *json = &read->json;
    bool is_seen[SW_COUNT(members)] = {false};
    sw_json_text key;
    size_t likely = 0;

    if (!sw_json_enter_object(json))
        return false;
    while (sw_json_next_key(json, &key)) {
        size_t i = find_member(key, likely);
        if (i == SW_COUNT(members)) {
            return sw_json_fail(json, record_help, "tensor '%.*s': unknown key '%.*s'", shown(tensor->name),
                                tensor->name.bytes, shown(key), key.bytes);
        }
        if (is_seen[i]) {
            return sw_json_fail(json, record_help, "tensor '%.*s': key '%s' stands twice",
                                shown(tensor->name), tensor->name.bytes, members[i].key);
        }
        is_seen[i] = true;
        likely = i + 1;
        if (!members[i].read(read, tensor))
            return false;
    }
    for (size_t i = 0; i < SW_COUNT(members) && json->status == SW_OK; i++) {
        if (!is_seen[i]) {
            return sw_json_fail(json, record_help, "tensor '%.*s': key '%s' is missing", shown(tensor->name),
                                tensor->name.bytes, members[i].key);
        }
    }
    return json->status == SW_OK;
}

/* The same for every dtype, known or not. */
static sw_status check_range(const reader *read, const record *tensor)
{
    if (tensor->begin > tensor->end) {
        return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                       "%s: tensor '%.*s': begins at byte %" PRIu64 " and ends before it, at %" PRIu64,
                       read->path, shown(tensor->name), tensor->name.bytes, tensor->begin, tensor->end);
    }
    if (tensor->end > read->data_bytes) {
        return SW_FAIL(read->err, SW_E_FORMAT, "the file is cut off or damaged; copy or download it again",
                       "%s: tensor '%.*s': ends at byte %" PRIu64 " of data of %" PRIu64 " bytes", read->path,
                       shown(tensor->name), tensor->name.bytes, tensor->end, read->data_bytes);
    }
    return SW_OK;
}

static sw_status check_bytes(const reader *read, const record *tensor, const sw_shape *shape)
{
    uint32_t bits = sw_dtype_bits(tensor->dtype);
    uint64_t all_bits = 0;

    if (bits == 0) /* of an unknown dtype the range is all there is to know */
        return SW_OK;
    bool fits = sw_mul_u64(shape->elems, bits, &all_bits);
    if (fits && all_bits % 8 != 0) {
        return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                       "%s: tensor '%.*s': %" PRIu64 " elements of %" PRIu32 " bits fill no whole byte",
                       read->path, shown(tensor->name), tensor->name.bytes, shape->elems, bits);
    }
    if (!fits || all_bits / 8 != tensor->end - tensor->begin) {
        return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                       "%s: tensor '%.*s': %" PRIu64 " elements of %s do not make the %" PRIu64
                       " bytes of its data_offsets",
                       read->path, shown(tensor->name), tensor->name.bytes, shape->elems,
                       sw_dtype_name(tensor->dtype), tensor->end - tensor->begin);
    }
    return SW_OK;
}

static sw_status keep_span(reader *read, const record *tensor)
{
    if (read->n_spans == read->capacity) {
        size_t capacity = read->capacity == 0 ? 64 : read->capacity * 2;
        span *spans = sw_realloc(read->spans, capacity * sizeof *spans);
        if (spans == NULL) {
            return SW_FAIL(read->err, SW_E_NO_MEMORY, "", "%s: no memory for %zu tensors", read->path,
                           read->n_spans + 1);
        }
        read->spans = spans;
        read->capacity = capacity;
    }
    if (read->n_spans > 0) {
        const span *last = &read->spans[read->n_spans - 1];
        read->is_sorted = read->is_sorted && (tensor->begin > last->begin ||
                                              (tensor->begin == last->begin && tensor->end >= last->end));
    }
    read->spans[read->n_spans++] = (span){tensor->begin, tensor->end, (uint32_t)read->list->n_tensors};
    return SW_OK;
}

static sw_status add_tensor(reader *read, const record *tensor)
{
    const sw_shape *shape = NULL;

    SW_TRY(check_range(read, tensor));
    sw_status status = sw_tensor_list_shape(read->list, tensor->dims, tensor->n_dims, &shape, read->err);
    if (status != SW_OK) {
        sw_error_context(read->err, "%s: tensor '%.*s'", read->path, shown(tensor->name), tensor->name.bytes);
        return status;
    }
    SW_TRY(check_bytes(read, tensor, shape));
    SW_TRY(keep_span(read, tensor));
    status = sw_tensor_list_add(read->list, tensor->name.bytes, tensor->name.length, tensor->dtype, shape,
                                read->file, tensor->begin, read->err);
    if (status == SW_OK && tensor->dtype == SW_DTYPE_UNKNOWN)
        status = sw_tensor_list_note_unknown(read->list, tensor->dtype_word.bytes, tensor->dtype_word.length,
                                             read->err);
    if (status != SW_OK)
        sw_error_context(read->err, "%s", read->path);
    return status;
}

/* An object of strings; what it says is for others. */
static bool check_metadata(sw_json *json)
{
    sw_json_text text;

    if (!sw_json_enter_object(json))
        return false;
    while (sw_json_next_key(json, &text)) {
        if (!sw_json_raw_string(json, &text))
            return false;
    }
    return json->status == SW_OK;
}

static sw_status read_header(reader *read)
{
    sw_json *json = &read->json;
    bool has_metadata = false;
    sw_json_text name;

    (void)sw_json_enter_object(json);
    while (sw_json_next_key(json, &name)) {
        if (sw_json_text_is(name, "__metadata__")) {
            if (has_metadata) {
                (void)sw_json_fail(json, "write the file again with one __metadata__",
                                   "__metadata__ stands twice");
            } else {
                (void)check_metadata(json);
            }
            has_metadata = true;
            continue;
        }
        record tensor = {.name = name};
        sw_map_prefetch(&read->list->by_name, name.bytes, name.length);
        if (read_record(read, &tensor))
            SW_TRY(add_tensor(read, &tensor));
    }
    (void)sw_json_finish(json);
    return json->status;
}

static int compare_spans(const void *a, const void *b)
{
    const span *left = a;
    const span *right = b;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return left->tensor < right->tensor ? -1 : left->tensor > right->tensor;
}

static sw_status check_cover(reader *read)
{
    uint64_t covered = 0;

    if (!read->is_sorted)
        qsort(read->spans, read->n_spans, sizeof *read->spans, compare_spans);
    for (size_t i = 0; i < read->n_spans; i++) {
        const span *at = &read->spans[i];
        const char *name = read->list->tensors[at->tensor].name;
        if (at->begin < covered) {
            return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                           "%.100s: tensor '%.*s' begins at byte %" PRIu64
                           ", inside tensor '%.*s' that ends at %" PRIu64,
                           read->path, SHOWN, name, at->begin, SHOWN,
                           read->list->tensors[read->spans[i - 1].tensor].name, covered);
        }
        if (at->begin > covered) {
            return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                           "%s: bytes %" PRIu64 " to %" PRIu64 ", before tensor '%.*s', belong to no tensor",
                           read->path, covered, at->begin, SHOWN, name);
        }
        covered = at->end;
    }
    if (covered != read->data_bytes) {
        return SW_FAIL(read->err, SW_E_FORMAT, "the file is damaged",
                       "%s: data of %" PRIu64 " bytes, the last %" PRIu64 " belong to no tensor", read->path,
                       read->data_bytes, read->data_bytes - covered);
    }
    return SW_OK;
}

/* The prefix: how long the header is. Checked before anything is mapped or allocated by it. */
static sw_status read_prefix(sw_file_map head, uint64_t file_bytes, const char *path, uint64_t *header_bytes,
                             sw_error *err)
{
    uint64_t length = 0;

    if (sw_file_is_lfs_pointer(head)) {
        return SW_FAIL(err, SW_E_FORMAT, "run 'git lfs pull' to get the data",
                       "%s: is a Git LFS pointer, not the file itself", path);
    }
    if (head.n_bytes < PREFIX || file_bytes < PREFIX) {
        return SW_FAIL(err, SW_E_FORMAT, "copy or download the file again",
                       "%s: %" PRIu64 " bytes are too few for a safetensors file", path, file_bytes);
    }
    for (int i = PREFIX - 1; i >= 0; i--)
        length = length << 8 | head.bytes[i];
    if (length > SW_SAFETENSORS_MAX_HEADER) {
        return SW_FAIL(err, SW_E_LIMIT, "the file is damaged or not a safetensors file",
                       "%s: header of %" PRIu64 " bytes, the format allows %d", path, length,
                       SW_SAFETENSORS_MAX_HEADER);
    }
    if (length == 0)
        return SW_FAIL(err, SW_E_FORMAT, "write or copy the file again",
                       "%s: header of 0 bytes: the file is damaged, or was never finished", path);
    if (length > file_bytes - PREFIX) {
        return SW_FAIL(err, SW_E_FORMAT, "copy or download the file again",
                       "%s: header of %" PRIu64 " bytes in a file of %" PRIu64, path, length, file_bytes);
    }
    *header_bytes = length;
    return SW_OK;
}

sw_status sw_safetensors_read(sw_tensor_list *list, sw_file_map head, uint64_t file_bytes, uint32_t file,
                              const char *path, sw_error *err)
{
    reader read SW_AUTO(clear_reader) = {
        .list = list, .path = path, .file = file, .is_sorted = true, .err = err};
    uint64_t header_bytes = 0;

    SW_TRY(read_prefix(head, file_bytes, path, &header_bytes, err));
    if (header_bytes > head.n_bytes - PREFIX) {
        return SW_FAIL(err, SW_E_FORMAT, "copy or download the file again",
                       "%s: header of %" PRIu64 " bytes, only %zu can be read", path, header_bytes,
                       head.n_bytes - PREFIX);
    }
    if (head.bytes[PREFIX] != '{') {
        return SW_FAIL(err, SW_E_FORMAT, "the file is damaged or not a safetensors file",
                       "%s: header begins with byte 0x%02x, not with '{'", path, head.bytes[PREFIX]);
    }
    read.data_bytes = file_bytes - PREFIX - header_bytes;
    sw_json_init(&read.json, head.bytes, PREFIX + (size_t)header_bytes, path, list->arena, err);
    read.json.at += PREFIX; /* so that messages count bytes from the start of the file */
    SW_TRY(sw_tensor_list_reserve(list, (size_t)header_bytes / USUAL_RECORD, err));
    SW_TRY(read_header(&read));
    return check_cover(&read);
}

sw_status sw_safetensors_read_file(sw_tensor_list *list, const char *path, sw_error *err)
{
    sw_file_map head SW_AUTO(sw_file_map_close) = {0};
    uint64_t file_bytes = 0;
    uint64_t header_bytes = 0;
    uint32_t file = 0;

    SW_TRY(sw_file_map_head(&head, path, PEEK, &file_bytes, err));
    SW_TRY(read_prefix(head, file_bytes, path, &header_bytes, err));
    if (header_bytes > head.n_bytes - PREFIX) {
        sw_file_map_close(&head);
        SW_TRY(sw_file_map_head(&head, path, PREFIX + header_bytes, &file_bytes, err));
    }
    SW_TRY(sw_tensor_list_add_file(list, path, &file, err));
    return sw_safetensors_read(list, head, file_bytes, file, path, err);
}
