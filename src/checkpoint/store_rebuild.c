/*
 * A sharded folder whose manifest is gone, put together from what its files say of themselves. There are no
 * hashes then, and no training state; that the tensors are all there is proved by the model's fingerprint.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "checkpoint/regions.h"
#include "model/shards.h"

/* What one file holds of one tensor, in the order of the files. */
typedef struct record {
    uint32_t tensor; /* in the store's list */
    sw_store_part part;
    const char *word;
} record;

typedef struct builder {
    sw_opening *o;
    record *records;
    uint32_t n_records;
    uint32_t capacity;
} builder;

static void clear_builder(builder *b)
{
    sw_free(b->records);
}

static sw_status add_record(builder *b, const record *r)
{
    if (b->n_records == b->capacity) {
        uint32_t wanted = b->capacity == 0 ? 256 : b->capacity * 2;
        record *grown = wanted > b->capacity ? sw_realloc(b->records, wanted * sizeof *grown) : NULL;
        if (grown == NULL)
            return SW_FAIL(b->o->err, SW_E_NO_MEMORY, "", "%s: no memory", b->o->store->path);
        b->records = grown;
        b->capacity = wanted;
    }
    b->records[b->n_records++] = *r;
    return SW_OK;
}

/* ---- sw.slices ---- */

/* One tensor of sw.slices. */
typedef struct slice {
    sw_json_text name;
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims;
    sw_held held;
} slice;

static bool read_shape(sw_json *json, slice *s)
{
    s->n_dims = 0;
    if (!sw_json_enter_array(json))
        return false;
    while (sw_json_next_element(json)) {
        if (s->n_dims == SW_MAX_DIMS)
            return sw_json_fail(json, "", "more than %d dims", SW_MAX_DIMS);
        if (!sw_json_u64(json, &s->dims[s->n_dims++]))
            return false;
    }
    return json->status == SW_OK;
}

/* "shape" and "regions", in this order. */
static bool read_slice(sw_json *json, sw_regions_reader *regions, slice *s)
{
    sw_json_text key;
    size_t n = 0;

    if (!sw_json_enter_object(json))
        return false;
    for (; sw_json_next_key(json, &key); n++) {
        if (n > 1 || !sw_json_text_is(key, n == 0 ? "shape" : "regions"))
            return sw_json_fail(json, "", "the keys of a slice are shape and regions");
        if (n == 0 ? !read_shape(json, s) : !sw_regions_read(regions, json, &s->held))
            return false;
    }
    if (json->status == SW_OK && n != 2)
        return sw_json_fail(json, "", "a slice without shape and regions");
    return json->status == SW_OK;
}

/* The tensor of the slice in the store's list, made when it is new. Another shape than before is a fault. */
static sw_status place_slice(builder *b, const sw_rank_file *file, const slice *s, sw_tensor_entry **out)
{
    sw_store *store = b->o->store;
    const sw_shape *shape = NULL;
    const sw_tensor_entry *local = sw_tensor_list_find(&file->list, s->name.bytes, s->name.length);

    *out = NULL;
    if (local == NULL)
        return SW_OK; /* counted by the caller */
    SW_TRY(sw_tensor_list_shape(&store->list, s->dims, s->n_dims, &shape, b->o->err));
    *out = sw_tensor_list_find(&store->list, s->name.bytes, s->name.length);
    if (*out == NULL) {
        SW_TRY(sw_tensor_list_add(&store->list, s->name.bytes, s->name.length, (sw_dtype)local->dtype, shape,
                                  UINT32_MAX, 0, b->o->err));
        *out = &store->list.tensors[store->list.n_tensors - 1];
    }
    bool is_same = (*out)->shape == shape && (*out)->dtype == local->dtype &&
                   sw_part_fits(&s->held.part, shape->dims, shape->n_dims) &&
                   local->shape->n_dims == shape->n_dims;
    for (uint32_t d = 0; is_same && d < shape->n_dims; d++)
        is_same = sw_part_extent(&s->held.part, d) == local->shape->dims[d];
    if (!is_same)
        *out = NULL;
    return SW_OK;
}

static sw_status read_slices(builder *b, const sw_rank_file *file, uint32_t f, uint32_t *n_placed)
{
    sw_regions_reader regions SW_AUTO(sw_regions_reader_clear) = {.arena = b->o->store->arena};
    sw_json json;
    slice s;

    *n_placed = 0;
    sw_json_init(&json, file->slices.bytes, file->slices.length, b->o->store->files[f].path,
                 b->o->store->arena, b->o->err);
    (void)sw_json_enter_object(&json);
    while (sw_json_next_key(&json, &s.name)) {
        sw_tensor_entry *entry = NULL;
        if (!read_slice(&json, &regions, &s))
            break;
        SW_TRY(place_slice(b, file, &s, &entry));
        if (entry == NULL)
            return SW_FAIL(b->o->err, SW_E_FORMAT, "the file is of another checkpoint, or damaged",
                           "%s: sw.slices does not fit the tensor '%.*s'", b->o->store->files[f].path,
                           (int)(s.name.length < 150 ? s.name.length : 150), s.name.bytes);
        size_t i =
            (size_t)(sw_tensor_list_find(&file->list, s.name.bytes, s.name.length) - file->list.tensors);
        record r = {.tensor = (uint32_t)(entry - b->o->store->list.tensors), .word = file->words[i]};
        r.part = (sw_store_part){.file = f,
                                 .begin = file->list.tensors[i].begin,
                                 .n_bytes = file->ends[i] - file->list.tensors[i].begin,
                                 .part = s.held.part,
                                 .owned = s.held.owned,
                                 .is_replica = s.held.is_replica};
        SW_TRY(add_record(b, &r));
        ++*n_placed;
    }
    (void)sw_json_finish(&json);
    return json.status;
}

/* ---- files ---- */

static sw_status take_file(builder *b, const sw_rank_file *file, uint32_t f)
{
    sw_store *store = b->o->store;
    sw_store_file *made = &store->files[f];
    uint32_t n_placed = 0;

    if (store->fingerprint == 0)
        store->fingerprint = file->fingerprint;
    if (file->fingerprint != store->fingerprint)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "keep the files of one checkpoint together",
                       "%s: is of a model of fingerprint %016" PRIx64 ", files before it of %016" PRIx64,
                       made->path, file->fingerprint, store->fingerprint);
    made->n_bytes = file->n_bytes;
    made->data_begin = file->data_begin;
    made->pp = file->coord.pp;
    made->tp = file->coord.tp;
    made->ep = file->coord.ep;
    if (file->slices.bytes == NULL)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "its manifest is needed to read it",
                       "%s: has no sw.slices in its metadata", made->path);
    SW_TRY(read_slices(b, file, f, &n_placed));
    if (n_placed != file->list.n_tensors)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "the file is damaged",
                       "%s: holds %zu tensors, its sw.slices tell of %" PRIu32, made->path,
                       file->list.n_tensors, n_placed);
    return SW_OK;
}

static sw_status read_files(builder *b, const sw_shards *shards)
{
    sw_opening *o = b->o;

    SW_TRY(sw_opening_files(o, (uint32_t)shards->n_names));
    for (uint32_t f = 0; f < o->store->n_files; f++) {
        sw_rank_file file SW_AUTO(sw_rank_file_close) = {0};
        sw_store_file *made = &o->store->files[f];
        made->name = sw_arena_copy(o->store->arena, shards->names[f], strlen(shards->names[f]));
        made->path = sw_opening_path(o, shards->names[f]);
        if (made->name == NULL || made->path == NULL)
            return sw_opening_no_memory(o);
        SW_TRY(sw_rank_file_open(&file, o, made->path));
        SW_TRY(take_file(b, &file, f));
    }
    return SW_OK;
}

/* Records in the order of files become parts in the order of tensors. */
static sw_status give_parts(builder *b)
{
    sw_store *store = b->o->store;
    uint32_t at = 0;

    SW_TRY(sw_opening_tensors(b->o, (uint32_t)store->list.n_tensors, b->n_records));
    for (uint32_t i = 0; i < b->n_records; i++)
        store->tensors[b->records[i].tensor].n_parts++;
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        store->tensors[i].first_part = at;
        at += store->tensors[i].n_parts;
        store->tensors[i].n_parts = 0;
    }
    for (uint32_t i = 0; i < b->n_records; i++) {
        const record *r = &b->records[i];
        sw_store_tensor *t = &store->tensors[r->tensor];
        if (t->dtype_word == NULL)
            t->dtype_word = r->word;
        if (strcmp(t->dtype_word, r->word) != 0)
            return SW_FAIL(b->o->err, SW_E_FORMAT, "keep the files of one checkpoint together",
                           "%.200s is %.60s in one file and %.60s in another", t->name, t->dtype_word,
                           r->word);
        store->parts[t->first_part + t->n_parts++] = r->part;
    }
    return SW_OK;
}

sw_status sw_opening_rebuild(sw_opening *o)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};
    builder b SW_AUTO(clear_builder) = {.o = o};
    sw_store *store = o->store;
    const char *plan = sw_opening_path(o, SW_PLAN_NAME);

    if (plan == NULL)
        return sw_opening_no_memory(o);
    store->kind = SW_STORE_SHARDED;
    store->plan_path = sw_file_kind_of(plan) == SW_FILE_REGULAR ? plan : NULL;
    SW_TRY(sw_tensor_list_init(&store->list, 0, o->err));
    SW_TRY(sw_shards_list(&shards, store->path, o->err));
    SW_TRY(read_files(&b, &shards));
    sw_opening_remark(o, "manifest_missing", "", "verify cannot tell flipped bits without it",
                      "%.300s: has no manifest.json; put together from the files' own metadata", store->path);
    return give_parts(&b);
}
