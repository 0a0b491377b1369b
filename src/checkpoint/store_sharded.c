/*
 * A sharded folder by its manifest. The manifest says what should be there; each file's header says what is.
 * Where they differ it is a fault, named by file and tensor.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/manifest.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "model/shards.h"

enum { MOST_MANIFEST_BYTES = 1 << 30 };

static bool has_extents(const sw_part *part, const sw_shape *shape)
{
    if (shape->n_dims != part->n_dims)
        return false;
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        if (sw_part_extent(part, d) != shape->dims[d])
            return false;
    }
    return true;
}

/* Tensor `i` of a header against the manifest. */
static void match_tensor(sw_opening *o, const sw_rank_file *found, size_t i, uint32_t f)
{
    sw_store *store = o->store;
    const sw_tensor_entry *entry = &found->list.tensors[i];
    const sw_store_tensor *t = sw_store_find(store, entry->name, entry->name_length);
    sw_store_part *part = t == NULL ? NULL : sw_store_part_in(store, t, f);
    const char *name = store->files[f].name;

    if (part == NULL) {
        sw_opening_fault(o, "tensor_extra", entry->name, "the file is of another run",
                         "%s: holds %.200s, of which the manifest says nothing", name, entry->name);
        return;
    }
    if (strcmp(found->words[i], t->dtype_word) != 0) {
        sw_opening_fault(o, "tensor_differs", entry->name, "the file is of another run",
                         "%s: %.200s is %.60s, the manifest says %.60s", name, entry->name, found->words[i],
                         t->dtype_word);
        return;
    }
    if (!has_extents(&part->held->part, entry->shape)) {
        sw_opening_fault(o, "tensor_differs", entry->name, "the file is of another run",
                         "%s: the shape of %.200s is not that of the regions in the manifest", name,
                         entry->name);
        return;
    }
    part->begin = entry->begin;
    part->n_bytes = found->ends[i] - entry->begin;
    part->is_missing = false;
}

/* Is the file the one that the manifest means? */
static bool is_origin_right(sw_opening *o, const sw_rank_file *found, uint32_t f)
{
    const sw_store_file *file = &o->store->files[f];

    if (found->fingerprint != o->store->fingerprint) {
        sw_opening_fault(o, "file_foreign", file->name, "put the file of this checkpoint there",
                         "%s: is of a model of fingerprint %016" PRIx64 ", the manifest of %016" PRIx64,
                         file->name, found->fingerprint, o->store->fingerprint);
        return false;
    }
    if (found->coord.pp != file->pp || found->coord.tp != file->tp || found->coord.ep != file->ep) {
        char is[SW_COORD_TEXT_BYTES];
        char said[SW_COORD_TEXT_BYTES];
        sw_coord_text(found->coord, is);
        sw_coord_text((sw_coord){file->pp, file->tp, file->ep}, said);
        sw_opening_fault(o, "file_foreign", file->name, "put the file of this coordinate there",
                         "%s: is the file of %s, the manifest says %s", file->name, is, said);
        return false;
    }
    return true;
}

/* What each file should hold, to be said when it cannot be read. */
typedef struct contents {
    uint32_t *n_held;
    uint32_t *first; /* tensor */
} contents;

static void clear_contents(contents *c)
{
    sw_free(c->n_held);
    sw_free(c->first);
}

static sw_status count_contents(contents *out, const sw_opening *o)
{
    const sw_store *store = o->store;

    out->n_held = sw_alloc_zero((size_t)store->n_files + 1, sizeof *out->n_held);
    out->first = sw_alloc_zero((size_t)store->n_files + 1, sizeof *out->first);
    if (out->n_held == NULL || out->first == NULL)
        return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
    for (uint32_t i = store->n_tensors; i-- > 0;) {
        const sw_store_tensor *t = &store->tensors[i];
        for (uint32_t k = 0; k < t->n_parts; k++) {
            uint32_t f = store->parts[t->first_part + k].file;
            out->n_held[f]++;
            out->first[f] = i;
        }
    }
    return SW_OK;
}

static void unreadable(sw_opening *o, const contents *c, uint32_t f, sw_status status, const sw_error *why)
{
    sw_store_file *file = &o->store->files[f];
    const char *code = status == SW_E_IO ? "file_missing" : "file_damaged";

    file->is_missing = true;
    if (c->n_held[f] == 0)
        sw_opening_fault(o, code, file->name, why->help, "%.400s", why->what);
    else
        sw_opening_fault(o, code, file->name, why->help,
                         "%.250s (it holds %" PRIu32 " tensors, %.150s first)", why->what, c->n_held[f],
                         o->store->tensors[c->first[f]].name);
}

static sw_status read_file(sw_opening *o, const contents *c, uint32_t f)
{
    sw_rank_file found SW_AUTO(sw_rank_file_close) = {0};
    sw_store_file *file = &o->store->files[f];
    sw_error why = {0};
    sw_error *err = o->err;

    file->path = sw_opening_path(o, file->name);
    if (file->path == NULL)
        return sw_opening_no_memory(o);
    o->err = &why;
    sw_status status = sw_rank_file_open(&found, o, file->path);
    o->err = err;
    if (status == SW_E_NO_MEMORY)
        return SW_FAIL(err, status, why.help, "%s", why.what);
    if (status != SW_OK) {
        unreadable(o, c, f, status, &why);
        return SW_OK;
    }
    if (!is_origin_right(o, &found, f)) { /* nothing in it is what is looked for */
        file->is_missing = true;
        return SW_OK;
    }
    if (found.n_bytes != file->n_bytes)
        sw_opening_fault(o, "file_size", file->name, "the file is of another run",
                         "%s: has %" PRIu64 " bytes, the manifest says %" PRIu64, file->name, found.n_bytes,
                         file->n_bytes);
    file->n_bytes = found.n_bytes;
    file->data_begin = found.data_begin;
    for (size_t i = 0; i < found.list.n_tensors; i++)
        match_tensor(o, &found, i, f);
    return SW_OK;
}

static void report_lacking(sw_opening *o)
{
    const sw_store *store = o->store;

    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        for (uint32_t k = 0; k < t->n_parts; k++) {
            const sw_store_part *p = &store->parts[t->first_part + k];
            if (p->is_missing && !store->files[p->file].is_missing)
                sw_opening_fault(o, "tensor_missing", t->name, "the file is of another run",
                                 "%s: holds no %.200s as the manifest says", store->files[p->file].name,
                                 t->name);
        }
    }
}

/* ---- what stands beside ---- */

static sw_status add_known(const sw_opening *o, sw_map *known, const char *name)
{
    bool is_new = false;

    if (sw_map_put(known, name, strlen(name), 0, &is_new) != NULL)
        return SW_OK;
    return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", o->store->path);
}

sw_status sw_opening_known(const sw_opening *o, sw_map *known)
{
    const sw_store *store = o->store;

    SW_TRY(add_known(o, known, SW_MANIFEST_NAME));
    SW_TRY(add_known(o, known, SW_PLAN_NAME));
    for (uint32_t f = 0; f < store->n_files; f++)
        SW_TRY(add_known(o, known, store->files[f].name));
    for (uint32_t i = 0; i < store->n_carried; i++)
        SW_TRY(add_known(o, known, store->carried[i].name));
    return SW_OK;
}

/* What the manifest does not name: left over, put there by hand, or of another checkpoint. */
static sw_status report_extra(sw_opening *o)
{
    sw_shards found SW_AUTO(sw_shards_clear) = {0};
    sw_map known SW_AUTO(sw_map_clear) = {0};

    SW_TRY(sw_names_list(&found, o->store->path, o->err));
    SW_TRY(sw_opening_known(o, &known));
    for (size_t i = 0; i < found.n_names; i++) {
        const char *name = found.names[i];
        if (name[0] == '.' || sw_map_find(&known, name, strlen(name)) != NULL)
            continue;
        if (sw_is_shard(name)) {
            sw_opening_remark(o, "file_extra", name, "move it away if it is left over",
                              "%s: stands beside the manifest, which does not name it", name);
        } else {
            sw_opening_remark(o, "file_unlisted", name, "move it away, or copy it by hand if it is needed",
                              "%s: stands beside the manifest, which does not name it: it is not carried "
                              "along",
                              name);
        }
    }
    return SW_OK;
}

static sw_status read_files(sw_opening *o)
{
    contents c SW_AUTO(clear_contents) = {0};

    SW_TRY(count_contents(&c, o));
    for (uint32_t f = 0; f < o->store->n_files; f++)
        SW_TRY(read_file(o, &c, f));
    report_lacking(o);
    return report_extra(o);
}

static void check_state(sw_opening *o)
{
    const sw_store *store = o->store;

    if (store->state_json != NULL && sw_hash(store->state_json, store->state_length, 0) != store->state_hash)
        sw_opening_fault(o, "checksum", SW_MANIFEST_NAME, "copy it again, or write the checkpoint again",
                         SW_MANIFEST_NAME ": the training state has not the checksum that is recorded");
}

sw_status sw_store_check_plan(const sw_store *store, bool *is_right, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    *is_right = true;
    if (!store->has_plan_hash || store->plan_path == NULL)
        return SW_OK;
    SW_TRY(sw_file_map_open(&map, store->plan_path, UINT64_MAX, err));
    *is_right = sw_hash(map.bytes, map.n_bytes, 0) == store->plan_hash;
    return SW_OK;
}

sw_status sw_opening_manifest(sw_opening *o)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    sw_store *store = o->store;
    const char *path = sw_opening_path(o, SW_MANIFEST_NAME);

    if (path == NULL)
        return sw_opening_no_memory(o);
    store->kind = SW_STORE_SHARDED;
    store->has_manifest = true;
    SW_TRY(sw_tensor_list_init(&store->list, 0, o->err));
    SW_TRY(sw_map_text(&map, path, MOST_MANIFEST_BYTES, o->err));
    return sw_manifest_read(store, map, path, o->err);
}

sw_status sw_opening_sharded(sw_opening *o)
{
    sw_store *store = o->store;
    const char *plan = sw_opening_path(o, SW_PLAN_NAME);

    if (plan == NULL)
        return sw_opening_no_memory(o);
    SW_TRY(sw_opening_manifest(o));
    check_state(o);
    store->plan_path = sw_file_kind_of(plan) == SW_FILE_REGULAR ? plan : NULL;
    return read_files(o);
}
