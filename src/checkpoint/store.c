/*
 * Opening a checkpoint: which kind it is, what is common to both kinds, and the end of it. The files
 * themselves are read by store_hf.c, store_sharded.c and store_rebuild.c.
 */
#include "checkpoint/store.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/header.h"
#include "checkpoint/opening.h"
#include "model/model.h"
#include "model/shards.h"
#include "plan/report.h"

#define STORE_MEMORY_LIMIT ((size_t)4 << 30)

enum { MOST_META = 64, MOST_META_BYTES = 64 << 10 };

static const char *const state_prefixes[] = {"optim.m.", "optim.v.", "optim.master."};

/* ---- faults ---- */

void sw_opening_fault(sw_opening *o, const char *code, const char *fqn, const char *help, const char *format,
                      ...)
{
    char what[sizeof o->first.what];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (o->n_faults++ == 0)
        SW_IGNORE(SW_FAIL(&o->first, SW_E_FORMAT, help, "%s", what)); /* the verdict raises it */
    if (o->report != NULL)
        sw_report_add(o->report, SW_SEVERITY_ERROR, code, fqn, help, "%s", what);
}

void sw_opening_remark(sw_opening *o, const char *code, const char *fqn, const char *help, const char *format,
                       ...)
{
    char what[sizeof o->first.what];
    va_list args;

    if (o->report == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    sw_report_add(o->report, SW_SEVERITY_WARNING, code, fqn, help, "%s", what);
}

sw_status sw_opening_verdict(sw_opening *o)
{
    if (o->n_faults == 0 || o->is_lenient)
        return SW_OK;
    if (o->n_faults == 1)
        return SW_FAIL(o->err, SW_E_FORMAT, o->first.help, "%s", o->first.what);
    return SW_FAIL(o->err, SW_E_FORMAT, o->first.help, "%.400s (and %" PRIu32 " more)", o->first.what,
                   o->n_faults - 1);
}

sw_status sw_opening_no_memory(const sw_opening *o)
{
    return sw_arena_fail(o->store->arena, o->store->path, o->err);
}

/* ---- parts of a store ---- */

const char *sw_opening_path(const sw_opening *o, const char *name)
{
    const char *folder = o->store->folder;
    size_t n = strlen(folder);

    return sw_arena_format(o->store->arena, "%s%s%s", folder, n == 0 || folder[n - 1] == '/' ? "" : "/",
                           name);
}

static bool is_text(sw_json_text text)
{
    return memchr(text.bytes, '\0', text.length) == NULL;
}

sw_status sw_opening_meta(sw_opening *o, sw_json_text key, sw_json_text raw)
{
    sw_store *store = o->store;
    size_t n_bytes = key.length + raw.length;
    sw_json_text value;

    if ((key.length >= 3 && memcmp(key.bytes, "sw.", 3) == 0) || !is_text(key))
        return SW_OK;
    if (store->meta == NULL)
        store->meta = sw_arena_zero(store->arena, MOST_META, sizeof *store->meta);
    if (store->meta == NULL)
        return sw_opening_no_memory(o);
    for (uint32_t i = 0; i < store->n_meta; i++) {
        if (sw_json_text_is(key, store->meta[i].key))
            return SW_OK;
        n_bytes += store->meta[i].value_length;
    }
    if (store->n_meta == MOST_META || n_bytes > MOST_META_BYTES)
        return SW_OK; /* remarks of a tool, not tensors: the rest is let go */
    sw_store_meta *m = &store->meta[store->n_meta];
    m->key = sw_arena_copy(store->arena, key.bytes, key.length);
    if (m->key == NULL)
        return sw_opening_no_memory(o);
    SW_TRY(sw_json_decode(raw, &value, store->arena, store->path, o->err));
    m->value = value.bytes;
    m->value_length = value.length;
    store->n_meta++;
    return SW_OK;
}

static sw_status no_heap(const sw_opening *o)
{
    return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", o->store->path);
}

sw_status sw_opening_files(sw_opening *o, uint32_t n_files)
{
    sw_store *store = o->store;

    store->files = sw_alloc_zero((size_t)n_files + 1, sizeof *store->files);
    if (store->files == NULL)
        return no_heap(o);
    store->n_files = n_files;
    return SW_OK;
}

sw_store_tensor sw_store_tensor_of(const sw_store *store, size_t i)
{
    const sw_tensor_entry *entry = &store->list.tensors[i];

    return (sw_store_tensor){.name = entry->name,
                             .name_length = entry->name_length,
                             .dtype = (sw_dtype)entry->dtype,
                             .shape = entry->shape,
                             .state_of = UINT32_MAX};
}

sw_status sw_opening_tensors(sw_opening *o, uint32_t n_tensors, uint32_t n_parts)
{
    sw_store *store = o->store;

    store->tensors = sw_alloc_zero((size_t)n_tensors + 1, sizeof *store->tensors);
    store->parts = sw_alloc_zero((size_t)n_parts + 1, sizeof *store->parts);
    if (store->tensors == NULL || store->parts == NULL)
        return no_heap(o);
    store->n_tensors = n_tensors;
    store->n_parts = n_parts;
    for (uint32_t i = 0; i < n_tensors; i++)
        store->tensors[i] = sw_store_tensor_of(store, i);
    return SW_OK;
}

const char *sw_store_dtype_word(sw_store *store, sw_dtype dtype, sw_json_text word)
{
    if (dtype != SW_DTYPE_UNKNOWN)
        return sw_dtype_name(dtype);
    return sw_arena_copy(store->arena, word.bytes, word.length);
}

/* Optimizer state belongs to a parameter of the same shape. A name that only looks like one is a parameter.
 */
static void find_states(sw_opening *o)
{
    sw_store *store = o->store;

    for (uint32_t i = 0; i < store->n_tensors; i++) {
        sw_store_tensor *t = &store->tensors[i];
        for (size_t k = 0; k < SW_COUNT(state_prefixes); k++) {
            size_t n = strlen(state_prefixes[k]);
            if (t->name_length <= n || memcmp(t->name, state_prefixes[k], n) != 0)
                continue;
            const sw_store_tensor *base = sw_store_find(store, t->name + n, t->name_length - n);
            if (base == NULL)
                break;
            t->state_of = (uint32_t)(base - store->tensors);
            if (base->shape != t->shape)
                sw_opening_fault(o, "state_shape", t->name, "the state of another model",
                                 "%.200s has another shape than %.200s", t->name, base->name);
        }
    }
}

bool sw_opening_lacks_files(const sw_store *store)
{
    bool lacks = false;

    for (uint32_t f = 0; f < store->n_files && !store->has_manifest; f++)
        lacks = lacks || store->files[f].is_missing;
    return lacks;
}

/* The model is what its tensors say it is: a tensor more or less, or another shape, is another fingerprint.
 */
static void check_fingerprint(sw_opening *o)
{
    const sw_store *store = o->store;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < store->n_tensors; i++) {
        if (store->tensors[i].state_of == UINT32_MAX)
            sum += sw_tensor_fingerprint(&store->list.tensors[i]);
    }
    if (sum == store->fingerprint || store->kind == SW_STORE_HF || sw_opening_lacks_files(store))
        return;
    sw_opening_fault(
        o, "fingerprint", "", "a file is missing whole, or files of two checkpoints stand together",
        "%.300s: was written for a model of fingerprint %016" PRIx64 ", but its tensors make %016" PRIx64,
        store->path, store->fingerprint, sum);
}

/* ---- which kind ---- */

/* The name of the folder that is opened, or that the file stands in. */
static sw_status refuse_partial(const sw_store *store, sw_error *err)
{
    char real[PATH_MAX];
    const char *folder = store->folder[0] == '\0' ? "." : store->folder;
    const char *path = realpath(folder, real) == NULL ? folder : real;
    const char *slash = strrchr(path, '/');

    if (strstr(slash == NULL ? path : slash + 1, ".partial-") == NULL)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "run the command that made it again; it starts over",
                   "%s: the unfinished output of a run that was interrupted", store->path);
}

static bool is_rank_file(const char *name)
{
    return strncmp(name, "dense-pp", 8) == 0 || strncmp(name, "expert-pp", 9) == 0;
}

static sw_status note_format(void *user, sw_json_text key, sw_json_text value, sw_error *err)
{
    bool *is_ours = user;

    (void)value;
    (void)err;
    *is_ours = *is_ours || sw_json_text_is(key, SW_META_FORMAT);
    return SW_OK;
}

/* Does a file say that it is one of a sharded folder's? What cannot be read does not. */
static bool says_sharded(const sw_opening *o, const char *name)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    bool is_ours = false;
    sw_header_visitor visitor = {&is_ours, note_format, NULL};
    const char *path = sw_opening_path(o, name);
    uint64_t file_bytes = 0;
    uint64_t data_begin = 0;

    if (path == NULL || sw_file_kind_of(path) != SW_FILE_REGULAR ||
        sw_header_map(&map, path, &file_bytes, &data_begin, NULL) != SW_OK)
        return false;
    SW_IGNORE(sw_header_walk(map, data_begin, path, &visitor, NULL)); /* the reader will say what is wrong */
    return is_ours;
}

/* Does a manifest say that it is one of ours? Other tools write files of that name too. */
static bool says_manifest(const sw_opening *o, const char *path)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    sw_json json;
    sw_json_text key;
    sw_json_text word = {0};
    bool is_format = false;

    if (sw_file_kind_of(path) != SW_FILE_REGULAR || sw_map_text(&map, path, UINT64_MAX, NULL) != SW_OK)
        return false;
    sw_json_init(&json, map.bytes, map.n_bytes, path, o->store->arena, NULL);
    (void)(sw_json_peek(&json) == SW_JSON_OBJECT && sw_json_enter_object(&json));
    while (!is_format && json.depth > 0 && sw_json_next_key(&json, &key)) {
        is_format = sw_json_text_is(key, "format");
        if (!is_format)
            (void)sw_json_skip(&json);
    }
    return is_format && sw_json_peek(&json) == SW_JSON_STRING && sw_json_string(&json, &word) &&
           sw_json_text_is(word, SW_FORMAT_WORD);
}

static sw_status find_kind(sw_opening *o, sw_status (**read)(sw_opening *o))
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};
    const char *manifest = sw_opening_path(o, SW_MANIFEST_NAME);

    *read = sw_opening_hf;
    if (manifest == NULL)
        return sw_opening_no_memory(o);
    if (sw_file_kind_of(o->store->path) != SW_FILE_FOLDER)
        return SW_OK;
    if (says_manifest(o, manifest)) {
        *read = sw_opening_sharded;
        return SW_OK;
    }
    SW_TRY(sw_shards_list(&shards, o->store->path, o->err));
    for (size_t i = 0; i < shards.n_names; i++) {
        if (is_rank_file(shards.names[i]) && says_sharded(o, shards.names[i])) {
            *read = sw_file_kind_of(manifest) == SW_FILE_ABSENT ? sw_opening_rebuild : sw_opening_sharded;
            return SW_OK;
        }
    }
    return SW_OK;
}

/* ---- opening and closing ---- */

static sw_status name_folder(sw_store *store, const char *path, sw_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = strlen(path);

    if (sw_file_kind_of(path) != SW_FILE_FOLDER)
        n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    store->path = sw_arena_copy(store->arena, path, strlen(path));
    store->folder = sw_arena_copy(store->arena, path, n);
    if (store->path == NULL || store->folder == NULL)
        return sw_arena_fail(store->arena, path, err);
    return SW_OK;
}

static sw_status fill(sw_opening *o, const char *path)
{
    sw_status (*read)(sw_opening * o) = NULL;

    o->store->arena = sw_arena_create(STORE_MEMORY_LIMIT);
    if (o->store->arena == NULL)
        return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    SW_TRY(name_folder(o->store, path, o->err));
    SW_TRY(refuse_partial(o->store, o->err));
    SW_TRY(find_kind(o, &read));
    SW_TRY(read(o));
    find_states(o);
    check_fingerprint(o);
    SW_TRY(sw_opening_extra(o));
    return sw_opening_verdict(o);
}

sw_status sw_store_kind_of(const char *path, sw_store_kind *out, sw_error *err)
{
    sw_store store = {.arena = sw_arena_create(0)};
    sw_opening o = {.store = &store, .err = err};
    sw_status (*read)(sw_opening * o) = NULL;

    if (store.arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    sw_status status = name_folder(&store, path, err);
    if (status == SW_OK)
        status = find_kind(&o, &read);
    *out = read == sw_opening_hf ? SW_STORE_HF : SW_STORE_SHARDED;
    sw_arena_destroy(store.arena);
    return status;
}

sw_status sw_store_open(sw_store **out, const char *path, const sw_store_options *options, sw_error *err)
{
    sw_store *store = sw_alloc_zero(1, sizeof *store);
    sw_opening o = {.store = store, .err = err};

    *out = NULL;
    if (store == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
    if (options != NULL) {
        o.is_lenient = options->is_lenient;
        o.report = options->report;
    }
    sw_status status = fill(&o, path);
    if (status != SW_OK) {
        sw_store_close(store);
        return status;
    }
    *out = store;
    return SW_OK;
}

void sw_store_close(sw_store *store)
{
    if (store == NULL)
        return;
    sw_tensor_list_clear(&store->list);
    sw_free(store->files);
    sw_free(store->tensors);
    sw_free(store->parts);
    sw_free(store->extra_files);
    sw_free(store->carried);
    sw_arena_destroy(store->arena);
    sw_free(store);
}

const sw_store_tensor *sw_store_find(const sw_store *store, const char *name, size_t length)
{
    const sw_tensor_entry *entry = sw_tensor_list_find(&store->list, name, length);
    return entry == NULL ? NULL : &store->tensors[entry - store->list.tensors];
}

sw_store_part *sw_store_part_in(const sw_store *store, const sw_store_tensor *t, uint32_t file)
{
    uint32_t low = t->first_part;
    uint32_t high = t->first_part + t->n_parts;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (store->parts[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < t->first_part + t->n_parts && store->parts[low].file == file;
    return is_there ? &store->parts[low] : NULL;
}
