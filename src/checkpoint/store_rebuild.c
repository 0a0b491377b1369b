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
#include "checkpoint/slices.h"
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

/* One file while its slices are read. */
typedef struct placing {
    builder *b;
    const sw_rank_file *file;
    uint32_t number;
    uint32_t n_placed;
} placing;

/* The tensor of the slice in the store's list, made when it is new. Another shape than before is a fault. */
static sw_status place_slice(builder *b, const sw_rank_file *file, const sw_slice_record *s,
                             sw_tensor_entry **out)
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

static sw_status take_slice(void *user, const sw_slice_record *s, sw_error *err)
{
    placing *p = user;
    const sw_rank_file *file = p->file;
    sw_store *store = p->b->o->store;
    sw_tensor_entry *entry = NULL;

    SW_TRY(place_slice(p->b, file, s, &entry));
    if (entry == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "the file is of another checkpoint, or damaged",
                       "%s: sw.slices does not fit the tensor '%.*s'", store->files[p->number].path,
                       (int)(s->name.length < 150 ? s->name.length : 150), s->name.bytes);
    size_t i = (size_t)(sw_tensor_list_find(&file->list, s->name.bytes, s->name.length) - file->list.tensors);
    record r = {.tensor = (uint32_t)(entry - store->list.tensors), .word = file->words[i]};
    r.part = (sw_store_part){.file = p->number,
                             .begin = file->list.tensors[i].begin,
                             .n_bytes = file->ends[i] - file->list.tensors[i].begin,
                             .part = s->held.part,
                             .owned = s->held.owned,
                             .is_replica = s->held.is_replica};
    p->n_placed++;
    return add_record(p->b, &r);
}

static sw_status read_slices(builder *b, const sw_rank_file *file, uint32_t f, uint32_t *n_placed)
{
    sw_regions_reader regions SW_AUTO(sw_regions_reader_clear) = {.arena = b->o->store->arena};
    placing p = {b, file, f, 0};

    sw_status status =
        sw_slices_read(file->slices, b->o->store->files[f].path, &regions, take_slice, &p, b->o->err);
    *n_placed = p.n_placed;
    return status;
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
