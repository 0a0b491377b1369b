/*
 * A Hugging Face folder before it is opened (checkpoint/verify.h): every file's header, and the index against
 * them. Opening stops at the first fault; here each is told, and what follows from one is not told again.
 */
#include "checkpoint/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "io/index.h"
#include "io/safetensors.h"
#include "model/shards.h"

static const char write_index[] = "write the index again from the files' headers";

/* One file that the folder or its index names. */
typedef struct entry {
    const char *name;
    bool is_there;  /* its header could be read */
    bool is_listed; /* in the index */
    uint32_t n_in_index;
    uint32_t first_in_index;
    uint32_t n_omitted; /* tensors that the index lacks */
    const char *first_omitted;
} entry;

typedef struct folder {
    const sw_verifying *v;
    sw_shards shards;
    sw_tensor_list index; /* names and the files they should be in */
    bool has_index;
    sw_map by_name; /* of the files: name → entry */
    entry *entries;
    uint32_t n_entries;
    sw_tensor_list *lists; /* by entry: what its header says */
    sw_map where;          /* tensor → entry that holds it */
} folder;

static void clear_folder(folder *f)
{
    for (uint32_t i = 0; i < f->n_entries; i++)
        sw_tensor_list_clear(&f->lists[i]);
    sw_free(f->lists);
    sw_free(f->entries);
    sw_map_clear(&f->where);
    sw_map_clear(&f->by_name);
    sw_tensor_list_clear(&f->index);
    sw_shards_clear(&f->shards);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status no_memory(const folder *f)
{
    return SW_FAIL(f->v->err, SW_E_NO_MEMORY, "", "%s: no memory to verify it", f->v->path);
}

/* A failure that is a finding; lack of memory is not. */
static sw_status tell(const folder *f, sw_status status, const char *code, const char *fqn,
                      const sw_error *why)
{
    if (status == SW_E_NO_MEMORY)
        return no_memory(f);
    sw_verify_fault(f->v, code, fqn, why->help, "%s", why->what);
    return SW_OK;
}

/* ---- the index ---- */

static sw_status read_index(folder *f)
{
    char *path SW_AUTO(drop_text) = sw_path_in(f->v->path, SW_INDEX_NAME);
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    sw_error why = {0};

    if (path == NULL)
        return no_memory(f);
    if (sw_file_kind_of(path) == SW_FILE_ABSENT)
        return SW_OK;
    SW_TRY(sw_tensor_list_init(&f->index, 0, f->v->err));
    sw_status status = sw_map_text(&map, path, SW_INDEX_MAX_BYTES, &why);
    if (status == SW_OK)
        status = sw_index_read(&f->index, map, path, &why);
    if (status != SW_OK)
        return tell(f, status, "index_damaged", SW_INDEX_NAME, &why);
    f->has_index = true;
    return SW_OK;
}

static sw_status add_entry(folder *f, const char *name, uint32_t *out)
{
    bool is_new = false;
    const uint32_t *at = sw_map_put(&f->by_name, name, strlen(name), f->n_entries, &is_new);

    if (at == NULL)
        return no_memory(f);
    *out = *at;
    if (is_new)
        f->entries[f->n_entries++] = (entry){.name = name};
    return SW_OK;
}

static sw_status list_files(folder *f)
{
    size_t n = f->shards.n_names + f->index.n_files;
    uint32_t at = 0;

    f->entries = sw_alloc_zero(n + 1, sizeof *f->entries);
    f->lists = sw_alloc_zero(n + 1, sizeof *f->lists);
    if (f->entries == NULL || f->lists == NULL)
        return no_memory(f);
    for (uint32_t i = 0; f->has_index && i < f->index.n_files; i++) {
        SW_TRY(add_entry(f, f->index.files[i], &at));
        f->entries[at].is_listed = true;
    }
    for (size_t i = 0; i < f->shards.n_names; i++)
        SW_TRY(add_entry(f, f->shards.names[i], &at));
    for (size_t i = f->index.n_tensors; f->has_index && i-- > 0;) {
        SW_TRY(add_entry(f, f->index.files[f->index.tensors[i].file], &at));
        f->entries[at].n_in_index++;
        f->entries[at].first_in_index = (uint32_t)i;
    }
    return SW_OK;
}

/* ---- headers ---- */

/* Is the file one that readers take? Beside an index they take what it names, and optimizer state. */
static bool is_read(const folder *f, const entry *e)
{
    return !f->has_index || e->is_listed || sw_is_state_file(e->name);
}

static sw_status read_header(folder *f, uint32_t i)
{
    entry *e = &f->entries[i];
    char *path SW_AUTO(drop_text) = sw_path_in(f->v->path, e->name);
    sw_error why = {0};

    if (path == NULL)
        return no_memory(f);
    if (sw_file_kind_of(path) == SW_FILE_ABSENT) {
        sw_verify_fault(f->v, "file_missing", e->name, "download it again",
                        "is missing, with %" PRIu32 " tensors, %.200s first", e->n_in_index,
                        f->index.tensors[e->first_in_index].name);
        return SW_OK;
    }
    SW_TRY(sw_tensor_list_init(&f->lists[i], 0, f->v->err));
    sw_status status = sw_expect_file(path, &why);
    if (status == SW_OK)
        status = sw_safetensors_read_file(&f->lists[i], path, &why);
    if (status != SW_OK)
        return tell(f, status, "file_damaged", e->name, &why);
    e->is_there = true;
    return SW_OK;
}

/* The other file that holds every tensor of this one too; NULL: there is none. */
static const entry *double_of(const folder *f, uint32_t i)
{
    const uint32_t *other = NULL;

    for (size_t k = 0; k < f->lists[i].n_tensors; k++) {
        const sw_tensor_entry *t = &f->lists[i].tensors[k];
        const uint32_t *at = sw_map_find(&f->where, t->name, t->name_length);
        if (at == NULL || (other != NULL && *at != *other))
            return NULL;
        other = at;
    }
    return other == NULL ? NULL : &f->entries[*other];
}

static sw_status place_tensors(folder *f, uint32_t i)
{
    entry *e = &f->entries[i];
    const entry *same = double_of(f, i);

    if (same != NULL)
        sw_verify_fault(f->v, "file_duplicate", e->name, "keep one of them",
                        "holds the same tensors as %.200s", same->name);
    for (size_t k = 0; k < f->lists[i].n_tensors; k++) {
        const sw_tensor_entry *t = &f->lists[i].tensors[k];
        bool is_new = false;
        const uint32_t *at = sw_map_put(&f->where, t->name, t->name_length, i, &is_new);
        if (at == NULL)
            return no_memory(f);
        if (!is_new && same == NULL)
            sw_verify_fault(f->v, "tensor_twice", t->name, "keep one of them",
                            "stands in %.150s and in %.150s", f->entries[*at].name, e->name);
        if (f->has_index && e->is_listed && sw_tensor_list_find(&f->index, t->name, t->name_length) == NULL &&
            e->n_omitted++ == 0)
            e->first_omitted = t->name;
    }
    return SW_OK;
}

static sw_status read_headers(folder *f)
{
    for (uint32_t i = 0; i < f->n_entries; i++) {
        const entry *e = &f->entries[i];
        if (!is_read(f, e)) {
            sw_verify_remark(f->v, "file_unlisted", e->name, "move it away when it is left over",
                             "stands beside the index, which does not name it: it is not read");
            continue;
        }
        SW_TRY(read_header(f, i));
        if (e->is_there)
            SW_TRY(place_tensors(f, i));
    }
    return SW_OK;
}

/* ---- the index against the headers ---- */

static sw_status compare_index(const folder *f)
{
    for (size_t i = 0; i < f->index.n_tensors; i++) {
        const sw_tensor_entry *t = &f->index.tensors[i];
        const char *file = f->index.files[t->file];
        const uint32_t *is_in = sw_map_find(&f->where, t->name, t->name_length);
        const uint32_t *should = sw_map_find(&f->by_name, file, strlen(file));
        bool is_there = f->entries[*should].is_there; /* what is not was told */
        if (is_there && sw_tensor_list_find(&f->lists[*should], t->name, t->name_length) != NULL)
            continue;
        if (is_in == NULL && is_there)
            sw_verify_fault(f->v, "tensor_missing", t->name, "download the file again",
                            "the index says it is in %.200s, which holds no such tensor", file);
        else if (is_in != NULL && is_there)
            sw_verify_fault(f->v, "index_differs", t->name, write_index,
                            "the index says it is in %.150s, it is in %.150s", file, f->entries[*is_in].name);
    }
    for (uint32_t i = 0; i < f->n_entries; i++) {
        const entry *e = &f->entries[i];
        if (e->n_omitted > 0)
            sw_verify_remark(f->v, "index_omits", e->name, write_index,
                             "holds %" PRIu32 " tensors that the index lacks, %.200s first", e->n_omitted,
                             e->first_omitted);
    }
    return SW_OK;
}

sw_status sw_verify_folder(const sw_verifying *v)
{
    folder f SW_AUTO(clear_folder) = {.v = v};

    if (sw_file_kind_of(v->path) != SW_FILE_FOLDER)
        return SW_OK;
    SW_TRY(sw_shards_list(&f.shards, v->path, v->err));
    SW_TRY(read_index(&f));
    SW_TRY(list_files(&f));
    if (f.shards.n_names == 0 && !f.has_index)
        return SW_OK; /* opening says what the folder is */
    SW_TRY(read_headers(&f));
    return f.has_index ? compare_index(&f) : SW_OK;
}
