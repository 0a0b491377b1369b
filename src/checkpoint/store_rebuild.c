/*
 * A sharded folder whose manifest is gone, put together from what its files say of themselves. There are no
 * hashes then, and no training state. That the files are of one run is told by its number, that they are all
 * there by their names, that the tensors are by the model's fingerprint.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "checkpoint/rank_names.h"
#include "checkpoint/slices.h"

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
    const char *first; /* file that could be read: the others must be of its run */
    uint64_t run;
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
                   sw_part_fits(&s->held->part, shape->dims, shape->n_dims) &&
                   local->shape->n_dims == shape->n_dims;
    for (uint32_t d = 0; is_same && d < shape->n_dims; d++)
        is_same = sw_part_extent(&s->held->part, d) == local->shape->dims[d];
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
                             .held = s->held};
    p->n_placed++;
    return add_record(p->b, &r);
}

static sw_status read_slices(builder *b, const sw_rank_file *file, uint32_t f, uint32_t *n_placed)
{
    sw_regions_reader regions SW_AUTO(sw_regions_reader_clear) = {.arena = b->o->store->arena};
    placing p = {b, file, f, 0};
    sw_json_text slices;

    SW_TRY(sw_rank_file_text(file, file->slices, &slices, b->o->err));
    sw_status status =
        sw_slices_read(slices, b->o->store->files[f].path, &regions, take_slice, &p, b->o->err);
    *n_placed = p.n_placed;
    return status;
}

/* ---- files ---- */

/* Is the file one of the run that the first one is of? */
static sw_status check_origin(builder *b, const sw_rank_file *file, const sw_store_file *made)
{
    sw_store *store = b->o->store;
    sw_coord coord = file->coord;
    char text[SW_COORD_TEXT_BYTES];

    if (coord.pp != made->pp || coord.tp != made->tp || coord.ep != made->ep) {
        sw_coord_text(coord, text);
        return SW_FAIL(b->o->err, SW_E_FORMAT, "put the file of this coordinate there",
                       "%s: is the file of %s", made->name, text);
    }
    if (b->first == NULL) {
        b->first = made->name;
        b->run = file->run;
        store->fingerprint = file->fingerprint;
    }
    if (file->fingerprint != store->fingerprint)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "keep the files of one checkpoint together",
                       "%s: is of a model of fingerprint %016" PRIx64 ", %.100s of %016" PRIx64, made->name,
                       file->fingerprint, b->first, store->fingerprint);
    if (file->run != b->run)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "keep the files of one checkpoint together",
                       "%s: was written by another run than %.100s", made->name, b->first);
    return SW_OK;
}

static sw_status take_file(builder *b, const sw_rank_file *file, uint32_t f)
{
    sw_store_file *made = &b->o->store->files[f];
    uint32_t n_placed = 0;

    made->n_bytes = file->n_bytes;
    made->data_begin = file->data_begin;
    if (file->slices.bytes == NULL)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "its manifest is needed to read it",
                       "%s: has no sw.slices in its metadata", made->name);
    SW_TRY(read_slices(b, file, f, &n_placed));
    if (n_placed != file->list.n_tensors)
        return SW_FAIL(b->o->err, SW_E_FORMAT, "the file is damaged",
                       "%s: holds %zu tensors, its sw.slices tell of %" PRIu32, made->name,
                       file->list.n_tensors, n_placed);
    return SW_OK;
}

/* The file as far as it can be used; *code is what is wrong with one that cannot. */
static sw_status look_at_file(builder *b, uint32_t f, const char **code)
{
    sw_rank_file file SW_AUTO(sw_rank_file_close) = {0};
    const sw_store_file *made = &b->o->store->files[f];

    *code = "file_missing";
    sw_status status = sw_rank_file_open(&file, b->o, made->path);
    SW_TRY(status);
    *code = "file_foreign";
    SW_TRY(check_origin(b, &file, made));
    *code = "file_damaged";
    return take_file(b, &file, f);
}

static sw_status read_file(builder *b, uint32_t f)
{
    sw_opening *o = b->o;
    sw_store_file *made = &o->store->files[f];
    const char *code = NULL;
    sw_error why = {0};
    sw_error *err = o->err;
    uint32_t n_before = b->n_records;

    o->err = &why;
    sw_status status = look_at_file(b, f, &code);
    o->err = err;
    if (status == SW_OK)
        return SW_OK;
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(err, status, why.help, "%s", why.what);
    made->is_missing = true; /* nothing of it is taken */
    b->n_records = n_before;
    if (status != SW_E_IO && strcmp(code, "file_missing") == 0)
        code = "file_damaged";
    sw_opening_fault(o, code, made->name, why.help, "%s", why.what);
    return SW_OK;
}

static sw_status read_files(builder *b, const sw_rank_names *names)
{
    sw_opening *o = b->o;

    SW_TRY(sw_opening_files(o, names->n));
    for (uint32_t f = 0; f < names->n; f++) {
        const sw_rank_name *n = &names->list[f];
        o->store->files[f] = (sw_store_file){.name = n->name,
                                             .path = sw_opening_path(o, n->name),
                                             .pp = n->coord.pp,
                                             .tp = n->coord.tp,
                                             .ep = n->coord.ep};
        if (o->store->files[f].path == NULL)
            return sw_opening_no_memory(o);
        SW_TRY(read_file(b, f));
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
            sw_opening_fault(b->o, "tensor_differs", t->name, "keep the files of one checkpoint together",
                             "%.200s is %.60s in one file and %.60s in another", t->name, t->dtype_word,
                             r->word);
        store->parts[t->first_part + t->n_parts++] = r->part;
    }
    for (uint32_t i = 0; i < store->n_tensors; i++) { /* of a file that turned out to be damaged behind it */
        if (store->tensors[i].dtype_word == NULL)
            store->tensors[i].dtype_word = sw_dtype_name(store->tensors[i].dtype);
    }
    return SW_OK;
}

sw_status sw_opening_rebuild(sw_opening *o)
{
    sw_rank_names names SW_AUTO(sw_rank_names_clear) = {0};
    builder b SW_AUTO(clear_builder) = {.o = o};
    sw_store *store = o->store;
    const char *plan = sw_opening_path(o, SW_PLAN_NAME);
    const char *config = sw_opening_path(o, "config.json");

    if (plan == NULL || config == NULL)
        return sw_opening_no_memory(o);
    store->kind = SW_STORE_SHARDED;
    store->plan_path = sw_file_kind_of(plan) == SW_FILE_REGULAR ? plan : NULL;
    SW_TRY(sw_tensor_list_init(&store->list, 0, o->err));
    SW_TRY(sw_rank_names_find(&names, o));
    SW_TRY(read_files(&b, &names));
    sw_opening_remark(o, "manifest_missing", "",
                      "without it flipped bits cannot be told, nor small files that are missing",
                      "%.300s: has no manifest.json; put together from the files' own metadata", store->path);
    if (sw_file_kind_of(config) == SW_FILE_ABSENT) /* killed before it was carried, or it never was */
        sw_opening_remark(o, "config_missing", "", "copy the small files of the model there",
                          "%.300s: has no config.json, and no manifest.json to tell what else is missing",
                          store->path);
    return give_parts(&b);
}
