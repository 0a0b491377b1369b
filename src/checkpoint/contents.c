/*
 * Listing a checkpoint (checkpoint/contents.h). A sharded folder is listed from its store, everything else
 * from the model's readers, which also take an index alone. Folding looks each name up once.
 */
#include "checkpoint/contents.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/header.h"
#include "io/safetensors.h"
#include "model/pattern.h"
#include "model/shards.h"

/* Contents while they are made. */
typedef struct making {
    sw_contents *out;
    const char *path;
    bool all;
    sw_map by_key;  /* what tensors of one row have in common → row */
    sw_buffer key;  /* of the tensor at hand, its pattern last */
    sw_buffer text; /* how it is stored */
    uint32_t rows_capacity;
    sw_error *err;
} making;

/* One tensor to be added. */
typedef struct subject {
    const char *name;
    size_t length;
    const char *dtype;
    const sw_shape *shape;
    const char *stored;
    uint64_t n_bytes;
    bool is_state;
} subject;

static void clear_making(making *m)
{
    sw_map_clear(&m->by_key);
    sw_buffer_clear(&m->key);
    sw_buffer_clear(&m->text);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status no_memory(const making *m)
{
    return SW_FAIL(m->err, SW_E_NO_MEMORY, "", "%s: no memory to list it", m->path);
}

void sw_contents_clear(sw_contents *contents)
{
    sw_store_close(contents->store);
    sw_model_close(contents->model);
    sw_tensor_list_clear(&contents->states);
    sw_free(contents->rows);
    sw_free(contents->files);
    sw_arena_destroy(contents->arena);
    *contents = (sw_contents){0};
}

/* ---- rows ---- */

static sw_status new_row(making *m, const subject *s)
{
    sw_contents *out = m->out;

    if (out->n_rows == m->rows_capacity) {
        uint32_t wanted = m->rows_capacity == 0 ? 256 : m->rows_capacity * 2;
        sw_contents_row *grown = sw_realloc(out->rows, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(m);
        out->rows = grown;
        m->rows_capacity = wanted;
    }
    sw_contents_row row = {.name = sw_arena_copy(out->arena, s->name, s->length),
                           .dtype = s->dtype,
                           .shape = s->shape,
                           .stored = sw_arena_copy(out->arena, s->stored, strlen(s->stored)),
                           .is_state = s->is_state};
    if (row.name == NULL || row.stored == NULL)
        return no_memory(m);
    out->rows[out->n_rows++] = row;
    return SW_OK;
}

/* What the tensors of a row have in common; its pattern's place in m->key. */
static char *make_key(making *m, const subject *s, uint32_t *pattern_length)
{
    int32_t counts[2];

    m->key.length = 0;
    sw_buffer_append(&m->key, &s->shape, sizeof(void *)); /* equal shapes are one */
    sw_buffer_append(&m->key, s->dtype, strlen(s->dtype) + 1);
    sw_buffer_append(&m->key, s->stored, strlen(s->stored) + 1);
    sw_buffer_putc(&m->key, s->is_state ? '1' : '0');
    char *pattern = sw_buffer_room(&m->key, s->length);
    if (pattern == NULL)
        return NULL;
    *pattern_length = sw_make_pattern(s->name, pattern, counts);
    m->key.length += *pattern_length;
    return pattern;
}

/* The row of a tensor: that of its key, or a new one. A row has its tensor's name until a second comes. */
static sw_status find_row(making *m, const subject *s, uint32_t *row)
{
    uint32_t length = 0;
    bool is_new = true;

    *row = m->out->n_rows;
    if (m->all)
        return new_row(m, s);
    const char *pattern = make_key(m, s, &length);
    uint32_t *at =
        pattern == NULL ? NULL : sw_map_put(&m->by_key, m->key.bytes, m->key.length, *row, &is_new);
    if (at == NULL)
        return no_memory(m);
    *row = *at;
    if (is_new) {
        char *kept = sw_arena_copy(m->out->arena, m->key.bytes, m->key.length);
        if (kept == NULL)
            return no_memory(m);
        sw_map_rekey(at, kept);
        return new_row(m, s);
    }
    if (m->out->rows[*row].n_tensors == 1) {
        m->out->rows[*row].name = sw_arena_copy(m->out->arena, pattern, length);
        if (m->out->rows[*row].name == NULL)
            return no_memory(m);
    }
    return SW_OK;
}

static sw_status add_tensor(making *m, const subject *s)
{
    sw_contents *out = m->out;
    uint32_t row = 0;

    SW_TRY(find_row(m, s, &row));
    out->rows[row].n_tensors++;
    out->rows[row].n_bytes += s->n_bytes;
    out->n_bytes += s->n_bytes;
    out->n_states += s->is_state;
    out->n_params += !s->is_state;
    if (!s->is_state && s->shape != NULL)
        out->n_elements += s->shape->elems;
    return SW_OK;
}

static sw_status make_files(making *m, uint32_t n)
{
    m->out->files = sw_alloc_zero((size_t)n + 1, sizeof *m->out->files);
    m->out->n_files = n;
    return m->out->files == NULL ? no_memory(m) : SW_OK;
}

/* ---- sharded folders ---- */

static bool is_cut(const sw_store *store, const sw_store_tensor *t, uint32_t dim)
{
    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        if (sw_part_extent(&store->parts[i].held->part, dim) != t->shape->dims[dim])
            return true;
    }
    return false;
}

/* "4 parts along dim 0", into m->text. */
static const char *describe_parts(making *m, const sw_store_tensor *t)
{
    uint32_t n_dims = 0;

    m->text.length = 0;
    for (uint32_t d = 0; d < t->shape->n_dims; d++) {
        if (!is_cut(m->out->store, t, d))
            continue;
        if (n_dims == 0)
            sw_buffer_printf(&m->text, "%" PRIu32 " parts along dim ", t->n_parts);
        sw_buffer_printf(&m->text, "%s%" PRIu32, n_dims++ == 0 ? "" : ",", d);
    }
    if (n_dims == 0 && t->n_parts == 1)
        sw_buffer_puts(&m->text, "whole");
    else if (n_dims == 0)
        sw_buffer_printf(&m->text, "whole in %" PRIu32 " files", t->n_parts);
    return sw_buffer_text(&m->text);
}

/* Bytes of the whole tensor, from what a part of it has. */
static uint64_t bytes_of(const sw_store *store, const sw_store_tensor *t)
{
    for (uint32_t i = t->first_part; i < t->first_part + t->n_parts; i++) {
        uint64_t elems = sw_part_elems(&store->parts[i].held->part);
        if (elems == t->shape->elems)
            return store->parts[i].n_bytes;
        if (elems > 0 && sw_dtype_bits(t->dtype) == 0) /* it is cut between rows */
            return store->parts[i].n_bytes / sw_part_extent(&store->parts[i].held->part, 0) *
                   t->shape->dims[0];
        if (elems > 0)
            return t->shape->elems / 8 * sw_dtype_bits(t->dtype) +
                   t->shape->elems % 8 * sw_dtype_bits(t->dtype) / 8;
    }
    return 0;
}

static sw_status add_store_tensors(making *m)
{
    const sw_store *store = m->out->store;

    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        subject s = {.name = t->name,
                     .length = t->name_length,
                     .dtype = t->dtype_word,
                     .shape = t->shape,
                     .stored = describe_parts(m, t),
                     .n_bytes = bytes_of(store, t),
                     .is_state = t->state_of != UINT32_MAX};
        if (s.stored == NULL)
            return no_memory(m);
        SW_TRY(add_tensor(m, &s));
    }
    return SW_OK;
}

static sw_status list_sharded(making *m, sw_report *report)
{
    sw_store_options options = {.report = report};
    sw_contents *out = m->out;

    SW_TRY(sw_store_open(&out->store, m->path, &options, m->err));
    out->kind = out->store->has_manifest ? "sharded folder" : "sharded folder without its manifest";
    out->fingerprint = out->store->fingerprint;
    out->state_length = out->store->state_length;
    SW_TRY(make_files(m, out->store->n_files));
    for (uint32_t f = 0; f < out->n_files; f++) {
        const sw_store_file *file = &out->store->files[f];
        char coord[SW_COORD_TEXT_BYTES];
        sw_coord_text((sw_coord){file->pp, file->tp, file->ep}, coord);
        out->files[f] = (sw_contents_file){.name = file->name,
                                           .coord = sw_arena_copy(out->arena, coord, strlen(coord)),
                                           .n_bytes = file->n_bytes,
                                           .is_there = true};
        if (out->files[f].coord == NULL)
            return no_memory(m);
    }
    for (uint32_t i = 0; i < out->store->n_parts; i++)
        out->files[out->store->parts[i].file].n_tensors++;
    return add_store_tensors(m);
}

/* ---- Hugging Face folders, files, an index alone ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* What the header says of a tensor whose dtype is not known: the list of tensors does not keep it. */
typedef struct opaque {
    const char *word; /* NULL: the dtype is known, or there is no header */
    uint64_t n_bytes;
} opaque;

typedef struct opaque_reader {
    const making *m;
    const sw_tensor_list *list;
    opaque *found; /* by tensor of the list */
} opaque_reader;

static void drop_opaque(opaque **list)
{
    sw_free(*list);
}

static sw_status visit_opaque(void *user, const sw_header_tensor *tensor, sw_error *err)
{
    const opaque_reader *r = user;
    const sw_tensor_entry *t = sw_tensor_list_find(r->list, tensor->name.bytes, tensor->name.length);

    (void)err;
    if (t == NULL || t->dtype != SW_DTYPE_UNKNOWN || tensor->end < tensor->begin)
        return SW_OK;
    opaque *to = &r->found[t - r->list->tensors];
    *to = (opaque){sw_arena_copy(r->m->out->arena, tensor->dtype.bytes, tensor->dtype.length),
                   tensor->end - tensor->begin};
    return to->word == NULL ? no_memory(r->m) : SW_OK;
}

static sw_status read_opaque_of(opaque_reader *reader, const char *file)
{
    const sw_header_visitor visitor = {reader, NULL, visit_opaque};
    sw_file_map head SW_AUTO(sw_file_map_close) = {0};
    uint64_t file_bytes = 0;
    uint64_t data_begin = 0;

    if (sw_file_kind_of(file) != SW_FILE_REGULAR)
        return SW_OK; /* an index alone */
    SW_TRY(sw_header_map(&head, file, &file_bytes, &data_begin, reader->m->err));
    return sw_header_walk(head, data_begin, file, &visitor, reader->m->err);
}

static void drop_flags(bool **flags)
{
    sw_free(*flags);
}

/* Headers of files with such tensors once more; *out stays NULL when there are none. */
static sw_status read_opaque(const making *m, const sw_tensor_list *list, opaque **out)
{
    opaque_reader reader = {.m = m, .list = list};
    bool *has_opaque SW_AUTO(drop_flags) = sw_alloc_zero((size_t)list->n_files + 1, sizeof *has_opaque);
    bool has_any = false;

    if (has_opaque == NULL)
        return no_memory(m);
    for (size_t i = 0; i < list->n_tensors; i++) {
        const sw_tensor_entry *t = &list->tensors[i];
        if (t->dtype != SW_DTYPE_UNKNOWN || t->file >= list->n_files)
            continue;
        has_opaque[t->file] = true;
        has_any = true;
    }
    if (!has_any)
        return SW_OK;
    *out = sw_alloc_zero(list->n_tensors, sizeof **out);
    if (*out == NULL)
        return no_memory(m);
    reader.found = *out;
    for (uint32_t f = 0; f < list->n_files; f++) {
        if (has_opaque[f])
            SW_TRY(read_opaque_of(&reader, list->files[f]));
    }
    return SW_OK;
}

static sw_status add_entry(making *m, const sw_tensor_list *list, const opaque *unknown,
                           const sw_tensor_entry *t, bool is_state)
{
    uint32_t bits = sw_dtype_bits((sw_dtype)t->dtype);
    subject s = {.name = t->name,
                 .length = t->name_length,
                 .dtype = sw_dtype_name((sw_dtype)t->dtype),
                 .shape = t->shape,
                 .stored = "whole",
                 .is_state = is_state};

    if (m->all && t->file < list->n_files)
        s.stored = base_name(list->files[t->file]);
    if (t->shape != NULL && !sw_mul_u64(t->shape->elems, bits, &s.n_bytes))
        s.n_bytes = 0;
    s.n_bytes /= 8;
    if (unknown != NULL && unknown[t - list->tensors].word != NULL) {
        s.dtype = unknown[t - list->tensors].word;
        s.n_bytes = unknown[t - list->tensors].n_bytes;
    }
    return add_tensor(m, &s);
}

static void look_at_file(sw_contents_file *out, const char *path)
{
    struct stat about;

    *out = (sw_contents_file){.name = base_name(path), .coord = ""};
    out->is_there = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    out->n_bytes = out->is_there ? (uint64_t)about.st_size : 0;
}

/* Optimizer state that merge has put beside the model. */
static sw_status read_states(making *m)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};
    sw_status status = SW_OK;

    SW_TRY(sw_tensor_list_init(&m->out->states, 0, m->err));
    if (sw_file_kind_of(m->path) != SW_FILE_FOLDER)
        return SW_OK;
    SW_TRY(sw_shards_list(&shards, m->path, m->err));
    for (size_t i = 0; i < shards.n_names && status == SW_OK; i++) {
        char *path SW_AUTO(drop_text) = sw_path_in(m->path, shards.names[i]);
        if (path == NULL)
            return no_memory(m);
        if (sw_is_state_file(shards.names[i]) && !sw_tensor_list_has_file(&m->out->model->list, path))
            status = sw_safetensors_read_file(&m->out->states, path, m->err);
    }
    return status;
}

static sw_status list_model_files(making *m)
{
    const sw_tensor_list *lists[] = {&m->out->model->list, &m->out->states};
    sw_contents *out = m->out;
    uint32_t first = 0;

    SW_TRY(make_files(m, lists[0]->n_files + lists[1]->n_files));
    for (size_t k = 0; k < SW_COUNT(lists); k++) {
        for (uint32_t f = 0; f < lists[k]->n_files; f++)
            look_at_file(&out->files[first + f], lists[k]->files[f]);
        for (size_t i = 0; i < lists[k]->n_tensors; i++) {
            if (lists[k]->tensors[i].file < lists[k]->n_files)
                out->files[first + lists[k]->tensors[i].file].n_tensors++;
        }
        first += lists[k]->n_files;
    }
    return SW_OK;
}

static const char *kind_of(const sw_contents *out, const char *path)
{
    bool has_data = out->n_files > 0;

    for (uint32_t f = 0; f < out->n_files; f++)
        has_data = has_data && out->files[f].is_there;
    if (!has_data)
        return out->n_files > 0 ? "index without its files" : "names and shapes without data";
    return sw_file_kind_of(path) == SW_FILE_FOLDER ? "Hugging Face folder" : "file";
}

static sw_status list_model(making *m)
{
    sw_contents *out = m->out;
    opaque *params SW_AUTO(drop_opaque) = NULL;
    opaque *states SW_AUTO(drop_opaque) = NULL;

    SW_TRY(sw_model_open(&out->model, m->path, m->err));
    out->fingerprint = out->model->fingerprint;
    SW_TRY(read_states(m));
    SW_TRY(list_model_files(m));
    out->kind = kind_of(out, m->path);
    SW_TRY(read_opaque(m, &out->model->list, &params));
    SW_TRY(read_opaque(m, &out->states, &states));
    for (uint32_t i = 0; i < out->model->n_params; i++)
        SW_TRY(add_entry(m, &out->model->list, params, sw_model_tensor(out->model, i), false));
    for (size_t i = 0; i < out->states.n_tensors; i++)
        SW_TRY(add_entry(m, &out->states, states, &out->states.tensors[i], true));
    return SW_OK;
}

sw_status sw_contents_make(sw_contents *out, const char *path, bool all, sw_report *report, sw_error *err)
{
    making m SW_AUTO(clear_making) = {.out = out, .path = path, .all = all, .err = err};

    *out = (sw_contents){.arena = sw_arena_create(0)};
    if (out->arena == NULL)
        return no_memory(&m);
    sw_store_kind kind = SW_STORE_HF;
    sw_status status = sw_store_kind_of(path, &kind, err);
    if (status == SW_OK)
        status = kind == SW_STORE_SHARDED ? list_sharded(&m, report) : list_model(&m);
    if (status != SW_OK)
        sw_contents_clear(out);
    return status;
}
