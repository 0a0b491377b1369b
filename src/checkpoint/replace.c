/*
 * Folders that --replace may take away (checkpoint/replace.h). A manifest names exactly what belongs to its
 * folder. Elsewhere it is the files that the index names, or model.safetensors, and whatever could have been
 * carried along: a small file that was put there by hand cannot be told from those.
 */
#include "checkpoint/replace.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "io/index.h"
#include "model/shards.h"

static const char by_hand[] = "give another folder, or remove it yourself if it is to go";

typedef struct replaced {
    const char *out;
    sw_shards names; /* all that stands there */
    sw_store_kind kind;
    sw_store *store;      /* what the manifest says; NULL: there is none */
    sw_tensor_list index; /* what the index says */
    sw_map known;         /* names that belong there */
    sw_error *err;
} replaced;

static void clear_replaced(replaced *f)
{
    sw_map_clear(&f->known);
    sw_tensor_list_clear(&f->index);
    sw_store_close(f->store);
    sw_shards_clear(&f->names);
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status no_memory(const replaced *f)
{
    return SW_FAIL(f->err, SW_E_NO_MEMORY, "", "%s: no memory", f->out);
}

static bool has_name(const replaced *f, const char *name)
{
    bool has_it = false;

    for (size_t i = 0; i < f->names.n_names && !has_it; i++)
        has_it = strcmp(f->names.names[i], name) == 0;
    return has_it;
}

/* ---- is it one? ---- */

/* Nobody's home or project: one that says it is sharded, or tensors with a config or an index beside them. */
static sw_status expect_checkpoint(replaced *f)
{
    bool has_tensors = false;

    SW_TRY(sw_store_kind_of(f->out, &f->kind, f->err));
    for (size_t i = 0; i < f->names.n_names; i++)
        has_tensors = has_tensors || sw_is_shard(f->names.names[i]);
    if (f->kind == SW_STORE_SHARDED ||
        (has_tensors && (has_name(f, "config.json") || has_name(f, SW_INDEX_NAME))))
        return SW_OK;
    return SW_FAIL(f->err, SW_E_ARGUMENT, by_hand, "%s: is no checkpoint, so it is not replaced", f->out);
}

/* ---- what belongs there ---- */

static sw_status add_known(replaced *f, const char *name)
{
    bool is_new = false;

    return sw_map_put(&f->known, name, strlen(name), 0, &is_new) == NULL ? no_memory(f) : SW_OK;
}

static sw_status know_manifest(replaced *f, sw_error *why)
{
    f->store = sw_alloc_zero(1, sizeof *f->store);
    if (f->store == NULL)
        return no_memory(f);
    *f->store = (sw_store){.path = f->out, .folder = f->out, .arena = sw_arena_create(0)};
    if (f->store->arena == NULL)
        return no_memory(f);
    sw_opening o = {.store = f->store, .err = why};
    SW_TRY(sw_opening_manifest(&o));
    return sw_opening_known(&o, &f->known);
}

static sw_status know_index(replaced *f, sw_error *why)
{
    char *path SW_AUTO(drop_text) = sw_path_in(f->out, SW_INDEX_NAME);
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    if (path == NULL)
        return no_memory(f);
    SW_TRY(sw_tensor_list_init(&f->index, 0, f->err));
    SW_TRY(sw_map_text(&map, path, SW_INDEX_MAX_BYTES, why));
    SW_TRY(sw_index_read(&f->index, map, path, why));
    for (uint32_t i = 0; i < f->index.n_files; i++)
        SW_TRY(add_known(f, f->index.files[i]));
    return SW_OK;
}

static sw_status know_names(replaced *f, sw_error *why)
{
    if (f->kind == SW_STORE_SHARDED && has_name(f, SW_MANIFEST_NAME))
        return know_manifest(f, why);
    if (f->kind == SW_STORE_SHARDED)
        return add_known(f, SW_PLAN_NAME);
    SW_TRY(add_known(f, SW_STATE_NAME));
    SW_TRY(add_known(f, SW_INDEX_NAME));
    return has_name(f, SW_INDEX_NAME) ? know_index(f, why) : add_known(f, "model.safetensors");
}

static sw_status find_known(replaced *f)
{
    sw_error why = {0};
    sw_status status = know_names(f, &why);

    if (status == SW_OK)
        return SW_OK;
    if (status == SW_E_NO_MEMORY)
        return no_memory(f);
    return SW_FAIL(f->err, SW_E_ARGUMENT, by_hand,
                   "%s: is not replaced, what belongs to it cannot be told: %.300s", f->out, why.what);
}

/* What is wrong with a name that is there; NULL: it belongs there. */
static const char *what_is_foreign(const replaced *f, const char *name, const struct stat *about)
{
    static const char others[] = "which is none of its files";
    sw_coord coord;

    if (S_ISDIR(about->st_mode))
        return "a folder";
    if (name[0] == '.')
        return "a hidden file";
    if (!S_ISREG(about->st_mode) && !S_ISLNK(about->st_mode))
        return "no regular file";
    if (sw_map_find(&f->known, name, strlen(name)) != NULL)
        return NULL;
    if (f->store != NULL)
        return "which its manifest does not name";
    if (f->kind == SW_STORE_SHARDED && sw_coord_of_file_name(&coord, name))
        return NULL;
    if (sw_is_shard(name))
        return f->kind == SW_STORE_HF && sw_is_state_file(name) ? NULL : others;
    if (!sw_is_carried_name(name))
        return others;
    return S_ISREG(about->st_mode) && about->st_size > SW_CARRY_MOST_BYTES
               ? "a large file without tensors that are known"
               : NULL;
}

static sw_status expect_nothing_else(const replaced *f)
{
    const char *first = NULL;
    const char *foreign = NULL;
    size_t n = 0;

    for (size_t i = 0; i < f->names.n_names; i++) {
        const char *name = f->names.names[i];
        char *path SW_AUTO(drop_text) = sw_path_in(f->out, name);
        struct stat about;
        if (path == NULL)
            return no_memory(f);
        if (lstat(path, &about) != 0)
            continue; /* it has just gone */
        const char *what = what_is_foreign(f, name, &about);
        if (what != NULL && n++ == 0) {
            first = name;
            foreign = what;
        }
    }
    if (n == 0)
        return SW_OK;
    if (n == 1)
        return SW_FAIL(f->err, SW_E_ARGUMENT, by_hand, "%s: is not replaced, it holds '%.100s', %s", f->out,
                       first, foreign);
    return SW_FAIL(f->err, SW_E_ARGUMENT, by_hand,
                   "%s: is not replaced, it holds '%.100s', %s (and %zu more)", f->out, first, foreign,
                   n - 1);
}

static sw_status check_source(const char *out, const char *source, sw_error *err)
{
    char folder[PATH_MAX];
    char inside[PATH_MAX];

    if (source == NULL || realpath(out, folder) == NULL || realpath(source, inside) == NULL)
        return SW_OK;
    size_t n = strlen(folder);
    if (strncmp(inside, folder, n) != 0 || inside[n] != '/')
        return SW_OK;
    return SW_FAIL(err, SW_E_ARGUMENT, "give another folder",
                   "%s: is not replaced, the source %.200s stands in it", out, source);
}

sw_status sw_replace_check(const char *out, const char *source, sw_error *err)
{
    replaced f SW_AUTO(clear_replaced) = {.out = out, .err = err};

    SW_TRY(check_source(out, source, err));
    SW_TRY(sw_names_list(&f.names, out, err));
    if (f.names.n_names == 0)
        return SW_OK;
    SW_TRY(expect_checkpoint(&f));
    SW_TRY(find_known(&f));
    return expect_nothing_else(&f);
}
