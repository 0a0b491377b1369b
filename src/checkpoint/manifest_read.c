/*
 * Reading manifest.json. Every object has known keys, each once; every number is bounded before it is used;
 * nothing of the file is kept but what goes into the store.
 */
#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "checkpoint/regions.h"
#include "io/index.h"
#include "model/shards.h"

enum { MOST_PARTS = 1 << 24, LONGEST_DTYPE = 64, SHOWN = 150 };

static const char damaged[] = "copy it again; without manifest.json the files tell of themselves";

typedef struct reader {
    sw_json json;
    sw_store *store;
    sw_regions_reader regions;
    sw_map file_names;
    uint32_t tensors_capacity;
    uint32_t parts_capacity;
    sw_json_text tensor; /* being read, for messages; no bytes: none */
} reader;

static void clear_reader(reader *r)
{
    sw_regions_reader_clear(&r->regions);
    sw_map_clear(&r->file_names);
}

/* One key of an object: its value goes `offset` bytes into the record. */
typedef struct field {
    const char *name;
    bool is_required;
    bool (*read)(reader *r, void *at);
    size_t offset;
} field;

static int shown(sw_json_text text)
{
    return (int)(text.length < SHOWN ? text.length : SHOWN);
}

static bool no_memory(reader *r)
{
    r->json.status = SW_FAIL(r->json.err, SW_E_NO_MEMORY, "", "%.200s: no memory", r->json.source);
    return false;
}

static bool read_object(reader *r, const char *what, const field *fields, size_t n_fields, void *into)
{
    uint32_t seen = 0;
    sw_json_text key;

    if (!sw_json_enter_object(&r->json))
        return false;
    while (sw_json_next_key(&r->json, &key)) {
        size_t i = 0;
        while (i < n_fields && !sw_json_text_is(key, fields[i].name))
            i++;
        if (i == n_fields)
            return sw_json_fail(&r->json, "this program may be older than the file", "%s has no key '%.*s'",
                                what, shown(key), key.bytes);
        if ((seen & (1U << i)) != 0)
            return sw_json_fail(&r->json, damaged, "'%s' stands twice in %s", fields[i].name, what);
        seen |= 1U << i;
        if (!fields[i].read(r, (char *)into + fields[i].offset))
            return false;
    }
    for (size_t i = 0; i < n_fields && r->json.status == SW_OK; i++) {
        if (fields[i].is_required && (seen & (1U << i)) == 0)
            return sw_json_fail(&r->json, damaged, "%s lacks '%s'", what, fields[i].name);
    }
    return r->json.status == SW_OK;
}

/* ---- values ---- */

static bool read_u64(reader *r, void *at)
{
    return sw_json_u64(&r->json, at);
}

static bool read_u32(reader *r, void *at)
{
    uint64_t value = 0;

    if (!sw_json_u64(&r->json, &value))
        return false;
    if (value > INT32_MAX)
        return sw_json_fail(&r->json, damaged, "the number %" PRIu64 " is too large here", value);
    *(uint32_t *)at = (uint32_t)value;
    return true;
}

static bool read_i32(reader *r, void *at)
{
    uint32_t value = 0;

    if (!read_u32(r, &value))
        return false;
    *(int32_t *)at = (int32_t)value;
    return true;
}

static bool read_hex(reader *r, void *at)
{
    sw_json_text text;

    if (!sw_json_string(&r->json, &text))
        return false;
    return sw_hex_parse(at, text.bytes, text.length) ||
           sw_json_fail(&r->json, damaged, "'%.*s' is not 16 hexadecimal digits", shown(text), text.bytes);
}

/* ---- files ---- */

static const char plain_names[] = "files stand beside the manifest, by plain names";

/* A plain name, each once. */
static bool read_small_name(reader *r, void *at)
{
    sw_json_text text;
    bool is_new = false;

    if (!sw_json_string(&r->json, &text))
        return false;
    if (!sw_is_plain_file_name(text.bytes, text.length))
        return sw_json_fail(&r->json, plain_names, "'%.*s' is not a plain file name", shown(text),
                            text.bytes);
    char *name = sw_arena_copy(r->store->arena, text.bytes, text.length);
    if (name == NULL || sw_map_put(&r->file_names, name, text.length, 0, &is_new) == NULL)
        return no_memory(r);
    *(const char **)at = name;
    return is_new || sw_json_fail(&r->json, damaged, "the file '%.150s' stands twice", name);
}

static bool read_file_name(reader *r, void *at)
{
    static const char ending[] = ".safetensors";
    size_t n = sizeof ending - 1;

    if (!read_small_name(r, at))
        return false;
    const char *name = *(const char **)at;
    size_t length = strlen(name);
    return (length > n && strcmp(name + length - n, ending) == 0) ||
           sw_json_fail(&r->json, plain_names, "'%.150s' is not a plain name of a .safetensors file", name);
}

static bool read_file(reader *r, uint32_t *capacity)
{
    static const field fields[] = {
        {"name",  true,  read_file_name, offsetof(sw_store_file, name)   },
        {"bytes", true,  read_u64,       offsetof(sw_store_file, n_bytes)},
        {"pp",    true,  read_i32,       offsetof(sw_store_file, pp)     },
        {"tp",    false, read_i32,       offsetof(sw_store_file, tp)     },
        {"ep",    false, read_i32,       offsetof(sw_store_file, ep)     },
    };
    sw_store *store = r->store;

    if (store->n_files == SW_MAX_SHARDS)
        return sw_json_fail(&r->json, damaged, "more than %d files", SW_MAX_SHARDS);
    if (store->n_files == *capacity) {
        uint32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
        sw_store_file *grown = sw_realloc(store->files, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(r);
        store->files = grown;
        *capacity = wanted;
    }
    sw_store_file *file = &store->files[store->n_files];
    *file = (sw_store_file){.pp = -1, .tp = -1, .ep = -1};
    if (!read_object(r, "a file", fields, SW_COUNT(fields), file))
        return false;
    store->n_files++;
    return true;
}

static bool read_files(reader *r, void *unused)
{
    uint32_t capacity = 0;

    (void)unused;
    if (!sw_json_enter_array(&r->json))
        return false;
    while (sw_json_next_element(&r->json)) {
        if (!read_file(r, &capacity))
            return false;
    }
    return r->json.status == SW_OK;
}

static bool read_carried(reader *r, void *unused)
{
    static const field fields[] = {
        {"name",  true, read_small_name, offsetof(sw_small_file, name)   },
        {"bytes", true, read_u64,        offsetof(sw_small_file, n_bytes)},
        {"xxh3",  true, read_hex,        offsetof(sw_small_file, hash)   },
    };
    sw_store *store = r->store;
    uint32_t capacity = 0;

    (void)unused;
    if (!sw_json_enter_array(&r->json))
        return false;
    while (sw_json_next_element(&r->json)) {
        if (store->n_carried == SW_CARRY_MOST_FILES)
            return sw_json_fail(&r->json, damaged, "more than %d small files", SW_CARRY_MOST_FILES);
        if (store->n_carried == capacity) {
            uint32_t wanted = capacity == 0 ? 16 : capacity * 2;
            sw_small_file *grown = sw_realloc(store->carried, wanted * sizeof *grown);
            if (grown == NULL)
                return no_memory(r);
            store->carried = grown;
            capacity = wanted;
        }
        if (!read_object(r, "a small file", fields, SW_COUNT(fields), &store->carried[store->n_carried]))
            return false;
        store->n_carried++;
    }
    return r->json.status == SW_OK;
}

/* ---- tensors ---- */

/* One tensor while it is read. */
typedef struct record {
    sw_dtype dtype;
    const char *word;
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims;
} record;

static bool read_dtype(reader *r, void *at)
{
    record *t = at;
    sw_json_text word;

    if (!sw_json_string(&r->json, &word))
        return false;
    if (word.length == 0 || word.length > LONGEST_DTYPE || memchr(word.bytes, '\0', word.length) != NULL)
        return sw_json_fail(&r->json, damaged, "'%.*s' is not a dtype", shown(word), word.bytes);
    t->dtype = sw_dtype_of(word.bytes, word.length);
    t->word = sw_store_dtype_word(r->store, t->dtype, word);
    return t->word != NULL || no_memory(r);
}

static bool read_shape(reader *r, void *at)
{
    record *t = at;

    if (!sw_json_enter_array(&r->json))
        return false;
    while (sw_json_next_element(&r->json)) {
        if (t->n_dims == SW_MAX_DIMS)
            return sw_json_fail(&r->json, damaged, "more than %d dims", SW_MAX_DIMS);
        if (!sw_json_u64(&r->json, &t->dims[t->n_dims++]))
            return false;
    }
    return r->json.status == SW_OK;
}

/* One part while it is read. */
typedef struct piece {
    uint32_t file;
    uint64_t hash;
    bool has_hash;
    const sw_held *held;
} piece;

static bool read_hash(reader *r, void *at)
{
    piece *p = at;

    p->has_hash = true;
    return read_hex(r, &p->hash);
}

static bool read_regions(reader *r, void *at)
{
    piece *p = at;

    return sw_regions_read(&r->regions, &r->json, &p->held);
}

static bool add_part(reader *r, const piece *p)
{
    sw_store *store = r->store;

    if (store->n_parts == MOST_PARTS)
        return sw_json_fail(&r->json, damaged, "more than %d parts of tensors", MOST_PARTS);
    if (store->n_parts == r->parts_capacity) {
        uint32_t wanted = r->parts_capacity == 0 ? 256 : r->parts_capacity * 2;
        sw_store_part *grown = sw_realloc(store->parts, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(r);
        store->parts = grown;
        r->parts_capacity = wanted;
    }
    store->parts[store->n_parts++] = (sw_store_part){.file = p->file,
                                                     .held = p->held,
                                                     .is_missing = true, /* until its header is read */
                                                     .has_hash = p->has_hash,
                                                     .hash = p->hash};
    return true;
}

/* Parts stand in the order of their files, so that a file has at most one. */
static bool read_parts(reader *r, void *unused)
{
    static const field fields[] = {
        {"file", true, read_u32, offsetof(piece, file)},
        {"xxh3",      false,     read_hash,   0   },
        {"regions",      true,  read_regions, 0},
    };
    sw_store *store = r->store;
    uint32_t first = store->n_parts;

    (void)unused;
    if (!sw_json_enter_array(&r->json))
        return false;
    while (sw_json_next_element(&r->json)) {
        piece p = {0};
        if (!read_object(r, "a part", fields, SW_COUNT(fields), &p))
            return false;
        if (p.file >= store->n_files)
            return sw_json_fail(&r->json, damaged,
                                "file %" PRIu32 " of %" PRIu32 " that stand before the tensors", p.file,
                                store->n_files);
        if (store->n_parts > first && p.file <= store->parts[store->n_parts - 1].file)
            return sw_json_fail(&r->json, damaged,
                                "file %" PRIu32 " holds it twice, or parts are not in order", p.file);
        if (!add_part(r, &p))
            return false;
    }
    return r->json.status == SW_OK && (store->n_parts > first || sw_json_fail(&r->json, damaged, "no parts"));
}

static bool add_tensor(reader *r, const record *t, uint32_t first_part)
{
    sw_store *store = r->store;
    const sw_shape *shape = NULL;
    sw_json *json = &r->json;

    json->status = sw_tensor_list_shape(&store->list, t->dims, t->n_dims, &shape, json->err);
    if (json->status == SW_OK)
        json->status = sw_tensor_list_add(&store->list, r->tensor.bytes, r->tensor.length, t->dtype, shape,
                                          UINT32_MAX, 0, json->err);
    if (json->status != SW_OK) {
        sw_error_context(json->err, "%.200s", json->source);
        return false;
    }
    for (uint32_t i = first_part; i < store->n_parts; i++) {
        if (!sw_part_fits(&store->parts[i].held->part, shape->dims, shape->n_dims))
            return sw_json_fail(json, damaged, "a region leaves the tensor or has other dims");
    }
    if (store->n_tensors == r->tensors_capacity) {
        uint32_t wanted = r->tensors_capacity == 0 ? 256 : r->tensors_capacity * 2;
        sw_store_tensor *grown = sw_realloc(store->tensors, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(r);
        store->tensors = grown;
        r->tensors_capacity = wanted;
    }
    sw_store_tensor *made = &store->tensors[store->n_tensors];
    *made = sw_store_tensor_of(store, store->n_tensors++);
    made->dtype_word = t->word;
    made->first_part = first_part;
    made->n_parts = store->n_parts - first_part;
    return true;
}

static bool read_tensors(reader *r, void *unused)
{
    static const field fields[] = {
        {"dtype", true, read_dtype, 0},
        {"shape", true, read_shape, 0},
        {"parts", true, read_parts, 0},
    };

    (void)unused;
    if (!sw_json_enter_object(&r->json))
        return false;
    while (sw_json_next_key(&r->json, &r->tensor)) {
        record t = {0};
        uint32_t first_part = r->store->n_parts;
        if (!read_object(r, "a tensor", fields, SW_COUNT(fields), &t) || !add_tensor(r, &t, first_part))
            return false;
    }
    r->tensor = (sw_json_text){0};
    return r->json.status == SW_OK;
}

/* ---- the document ---- */

static bool read_format(reader *r, void *unused)
{
    sw_json_text text;

    (void)unused;
    if (!sw_json_string(&r->json, &text))
        return false;
    return sw_json_text_is(text, SW_FORMAT_WORD) ||
           sw_json_fail(&r->json, "give a folder that `shardwright shard` wrote",
                        "format is '%.*s', not " SW_FORMAT_WORD, shown(text), text.bytes);
}

static bool read_version(reader *r, void *unused)
{
    uint64_t version = 0;

    (void)unused;
    if (!sw_json_u64(&r->json, &version))
        return false;
    return version == SW_MANIFEST_VERSION ||
           sw_json_fail(&r->json, "read it with the program that wrote it",
                        "version %" PRIu64 ", this program reads %d", version, SW_MANIFEST_VERSION);
}

static bool read_state(reader *r, void *unused)
{
    (void)unused;
    if (sw_json_peek(&r->json) == SW_JSON_END && r->json.status != SW_OK)
        return false;
    const char *begin = r->json.at;
    if (!sw_json_skip(&r->json))
        return false;
    r->json.status =
        sw_store_take_state(r->store, r->json.source, begin, (size_t)(r->json.at - begin), r->json.err);
    return r->json.status == SW_OK;
}

static bool read_state_hash(reader *r, void *unused)
{
    (void)unused;
    r->store->has_state_hash = true;
    return read_hex(r, &r->store->state_hash);
}

static bool read_plan_hash(reader *r, void *unused)
{
    (void)unused;
    r->store->has_plan_hash = true;
    return read_hex(r, &r->store->plan_hash);
}

static sw_status add_context(reader *r)
{
    if (r->tensor.bytes != NULL && r->json.status != SW_OK)
        sw_error_context(r->json.err, "tensor '%.*s'", shown(r->tensor), r->tensor.bytes);
    return r->json.status;
}

sw_status sw_manifest_read(sw_store *store, sw_file_map map, const char *path, sw_error *err)
{
    static const field fields[] = {
        {"format",      true, read_format,  0                   },
        {"version",     true, read_version, 0                   },
        {"fingerprint", true, read_hex,     offsetof(sw_store,    fingerprint)},
        {"files",             true,           read_files,       0      },
        {"carried",             false,         read_carried,    0},
        {"plan_xxh3",             false,       read_plan_hash,  0    },
        {"state",             false,           read_state,      0 },
        {"state_xxh3",             false,      read_state_hash, 0},
        {"tensors",             true,         read_tensors,     0     },
    };
    reader r SW_AUTO(clear_reader) = {.store = store};

    r.regions.arena = store->arena;
    sw_json_init(&r.json, map.bytes, map.n_bytes, path, store->arena, err);
    if (read_object(&r, "a manifest", fields, SW_COUNT(fields), store) && sw_json_finish(&r.json) &&
        store->has_state_hash != (store->state_json != NULL))
        (void)sw_json_fail(&r.json, damaged, "'state' and 'state_xxh3' go together");
    return add_context(&r);
}
