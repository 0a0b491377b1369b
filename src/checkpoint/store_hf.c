/*
 * A Hugging Face checkpoint as a store: the model's readers find and check the files, and every tensor is one
 * part that is the whole. Optimizer state, where merge has put it, stands in files of its own beside.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/header.h"
#include "checkpoint/opening.h"
#include "io/safetensors.h"
#include "model/model.h"
#include "model/shards.h"

/* One file being walked. */
typedef struct walking {
    sw_opening *o;
    uint32_t file;
    uint64_t data_bytes;
} walking;

static sw_status changed(const sw_opening *o, const char *path)
{
    return SW_FAIL(o->err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                   path);
}

/* Names, shapes and offsets by the model's own readers; the list is taken over. */
static sw_status read_model(sw_opening *o)
{
    sw_store *store = o->store;
    sw_model *model = NULL;

    SW_TRY(sw_model_open(&model, store->path, o->err));
    store->list = model->list;
    store->n_model = (uint32_t)model->list.n_tensors;
    store->fingerprint = model->fingerprint;
    model->list = (sw_tensor_list){0};
    sw_model_close(model);
    return SW_OK;
}

/* A model can be its config or an index alone; a checkpoint has data. */
static sw_status expect_data(const sw_opening *o)
{
    const sw_tensor_list *list = &o->store->list;
    size_t n = strlen(o->store->folder);
    const char *lacking = NULL;

    for (uint32_t f = 0; f < list->n_files && lacking == NULL; f++) {
        if (strncmp(list->files[f], o->store->folder, n) != 0 ||
            sw_file_kind_of(list->files[f]) != SW_FILE_REGULAR)
            lacking = list->files[f];
    }
    for (size_t i = 0; i < list->n_tensors && lacking == NULL; i++) {
        if (list->tensors[i].file >= list->n_files || list->tensors[i].shape == NULL)
            lacking = list->tensors[i].name;
    }
    if (lacking == NULL)
        return SW_OK;
    return SW_FAIL(o->err, SW_E_FORMAT, "give a folder with its *.safetensors files",
                   "%.200s: names and shapes only, without data: %.200s", o->store->path, lacking);
}

static sw_status read_state_files(sw_opening *o)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    const char *path = sw_opening_path(o, SW_STATE_NAME);

    if (path == NULL)
        return sw_opening_no_memory(o);
    SW_TRY(sw_shards_list(&shards, o->store->path, o->err));
    for (size_t i = 0; i < shards.n_names; i++) {
        if (!sw_is_state_file(shards.names[i]))
            continue;
        const char *file = sw_opening_path(o, shards.names[i]);
        if (file == NULL)
            return sw_opening_no_memory(o);
        if (!sw_tensor_list_has_file(&o->store->list, file)) /* an index may name it */
            SW_TRY(sw_safetensors_read_file(&o->store->list, file, o->err));
    }
    if (sw_file_kind_of(path) == SW_FILE_ABSENT)
        return SW_OK;
    SW_TRY(sw_map_text(&map, path, SW_MOST_STATE_BYTES, o->err));
    return sw_store_take_state(o->store, path, map.bytes, map.n_bytes, o->err);
}

/* ---- files ---- */

static sw_status visit_meta(void *user, sw_json_text key, sw_json_text raw, sw_error *err)
{
    const walking *w = user;

    (void)err;
    return sw_opening_meta(w->o, key, raw);
}

static sw_status visit_tensor(void *user, const sw_header_tensor *tensor, sw_error *err)
{
    const walking *w = user;
    sw_store *store = w->o->store;
    const sw_tensor_entry *entry = sw_tensor_list_find(&store->list, tensor->name.bytes, tensor->name.length);

    (void)err;
    if (entry == NULL || entry->file != w->file || entry->begin != tensor->begin ||
        tensor->end < tensor->begin || tensor->end > w->data_bytes)
        return changed(w->o, store->files[w->file].path);
    size_t i = (size_t)(entry - store->list.tensors);
    store->parts[i].file = w->file;
    store->parts[i].begin = tensor->begin;
    store->parts[i].n_bytes = tensor->end - tensor->begin;
    store->tensors[i].dtype_word = sw_store_dtype_word(store, store->tensors[i].dtype, tensor->dtype);
    return store->tensors[i].dtype_word == NULL ? sw_opening_no_memory(w->o) : SW_OK;
}

static sw_status read_file(sw_opening *o, uint32_t f)
{
    sw_file_map head SW_AUTO(sw_file_map_close) = {0};
    sw_store_file *file = &o->store->files[f];
    walking w = {o, f, 0};
    sw_header_visitor visitor = {&w, visit_meta, visit_tensor};
    const char *slash = NULL;

    file->path = o->store->list.files[f];
    slash = strrchr(file->path, '/');
    file->name = slash == NULL ? file->path : slash + 1;
    file->pp = file->tp = file->ep = -1;
    SW_TRY(sw_header_map(&head, file->path, &file->n_bytes, &file->data_begin, o->err));
    if (file->data_begin > file->n_bytes || file->data_begin > head.n_bytes)
        return changed(o, file->path);
    w.data_bytes = file->n_bytes - file->data_begin;
    return sw_header_walk(head, file->data_begin, file->path, &visitor, o->err);
}

/* ---- tensors ---- */

/* Every tensor is whole in its one part; equal shapes share it. */
static sw_status give_parts(sw_opening *o)
{
    sw_map by_shape SW_AUTO(sw_map_clear) = {0};
    sw_store *store = o->store;

    for (uint32_t i = 0; i < store->n_tensors; i++) {
        sw_store_tensor *t = &store->tensors[i];
        bool is_new = false;
        if (t->dtype_word == NULL)
            return changed(o, store->path);
        const uint32_t *at = sw_map_put(&by_shape, &t->shape, sizeof(void *), i, &is_new);
        if (at == NULL)
            return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
        if (is_new)
            SW_TRY(
                sw_held_whole(&store->parts[i].held, t->shape->dims, t->shape->n_dims, store->arena, o->err));
        store->parts[i].held = store->parts[*at].held;
        t->first_part = i;
        t->n_parts = 1;
    }
    return SW_OK;
}

sw_status sw_opening_hf(sw_opening *o)
{
    sw_store *store = o->store;

    store->kind = SW_STORE_HF;
    SW_TRY(read_model(o));
    SW_TRY(expect_data(o));
    if (sw_file_kind_of(store->path) == SW_FILE_FOLDER)
        SW_TRY(read_state_files(o));
    SW_TRY(sw_opening_tensors(o, (uint32_t)store->list.n_tensors, (uint32_t)store->list.n_tensors));
    SW_TRY(sw_opening_files(o, store->list.n_files));
    for (uint32_t f = 0; f < store->n_files; f++)
        SW_TRY(read_file(o, f));
    return give_parts(o);
}
