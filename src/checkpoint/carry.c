/*
 * Small files that go along (checkpoint/carry.h). Taken: regular files of the folder up to a limit, and what
 * links lead to that stay inside it, or inside the download cache that it is a snapshot of: a stranger's
 * folder must not be able to have other files of ours copied. Not taken: tensors, what the tensors' own
 * formats write anew, hidden files, folders, names that no manifest can have. Of a sharded folder what its
 * manifest lists is taken, and must be what was written.
 */
#include "checkpoint/carry.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/format.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "io/index.h"
#include "model/shards.h"

static void drop_text(char **text)
{
    sw_free(*text);
}

/* ---- which ---- */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text);
    size_t k = strlen(tail);
    return n >= k && strcmp(text + n - k, tail) == 0;
}

/* Names that a sharded folder has for its own files: another tool's of that name has no place there. */
static bool is_taken(const char *name)
{
    return strcmp(name, SW_MANIFEST_NAME) == 0 || strcmp(name, SW_PLAN_NAME) == 0;
}

/* Written anew by whoever writes tensors, or tensors themselves. */
static bool is_ours(const char *name)
{
    return is_taken(name) || strcmp(name, SW_STATE_NAME) == 0 || ends_with(name, ".safetensors") ||
           ends_with(name, ".safetensors.index.json");
}

bool sw_is_carried_name(const char *name)
{
    return name[0] != '.' && !is_ours(name) && sw_is_plain_file_name(name, strlen(name));
}

/*
 * In the cache of the Hugging Face hub a model is a folder CACHE/snapshots/REVISION of links to CACHE/blobs.
 * Cut `root`, such a folder's path, down to that of its cache.
 */
static void widen_to_cache(char *root)
{
    static const char parent[] = "/snapshots";
    char *slash = strrchr(root, '/');

    if (slash == NULL || (size_t)(slash - root) < sizeof parent ||
        memcmp(slash - (sizeof parent - 1), parent, sizeof parent - 1) != 0)
        return;
    slash[-(ptrdiff_t)(sizeof parent - 1)] = '\0';
}

/* Does a link lead to something inside the folder, or its cache? */
static bool stays_inside(const char *folder, const char *path)
{
    char root[PATH_MAX];
    char target[PATH_MAX];

    if (realpath(folder[0] == '\0' ? "." : folder, root) == NULL || realpath(path, target) == NULL)
        return false;
    widen_to_cache(root);
    size_t n = strlen(root);
    return strncmp(target, root, n) == 0 && (target[n] == '/' || n == 1);
}

/* NULL: carried; "": nothing to carry; else why not. */
static const char *reason_against(const char *folder, const char *path, const char *name)
{
    struct stat about;

    if (lstat(path, &about) != 0 || S_ISDIR(about.st_mode))
        return "";
    if (S_ISLNK(about.st_mode)) {
        if (!stays_inside(folder, path))
            return "a link out of the folder";
        if (stat(path, &about) != 0 || S_ISDIR(about.st_mode))
            return "";
    }
    if (!S_ISREG(about.st_mode))
        return "no regular file";
    if (!sw_is_plain_file_name(name, strlen(name)))
        return "a manifest cannot have its name";
    return about.st_size > SW_CARRY_MOST_BYTES ? "larger than 64 MiB" : NULL;
}

static sw_status consider(sw_opening *o, const char *name, uint32_t *capacity)
{
    sw_store *store = o->store;

    if (store->kind == SW_STORE_HF && is_taken(name))
        sw_opening_remark(o, "not_carried", name, "rename it if it is to go along",
                          "%.200s: is not carried along: a sharded folder has a file of that name", name);
    if (name[0] == '.' || is_ours(name))
        return SW_OK;
    const char *path = sw_opening_path(o, name);
    if (path == NULL)
        return sw_opening_no_memory(o);
    const char *reason = reason_against(store->folder, path, name);
    if (reason != NULL) {
        if (reason[0] != '\0')
            sw_opening_remark(o, "not_carried", name, "copy it by hand if it is needed",
                              "%.200s: is not carried along: %s", path, reason);
        return SW_OK;
    }
    if (store->n_extra_files == SW_CARRY_MOST_FILES)
        return SW_FAIL(o->err, SW_E_LIMIT, "check that this is a model's folder",
                       "%s: more than %d files to carry along", store->path, SW_CARRY_MOST_FILES);
    if (store->n_extra_files == *capacity) {
        uint32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
        const char **grown = sw_realloc(store->extra_files, wanted * sizeof *grown);
        if (grown == NULL)
            return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
        store->extra_files = grown;
        *capacity = wanted;
    }
    const char *copy = sw_arena_copy(store->arena, name, strlen(name));
    if (copy == NULL)
        return sw_opening_no_memory(o);
    store->extra_files[store->n_extra_files++] = copy;
    return SW_OK;
}

/* What the manifest lists, be it there or not; that it is what was written is looked at when it is read. */
static sw_status take_carried(sw_opening *o)
{
    sw_store *store = o->store;

    store->extra_files = sw_alloc_zero((size_t)store->n_carried + 1, sizeof *store->extra_files);
    if (store->extra_files == NULL)
        return SW_FAIL(o->err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
    for (uint32_t i = 0; i < store->n_carried; i++)
        store->extra_files[store->n_extra_files++] = store->carried[i].name;
    return SW_OK;
}

sw_status sw_opening_extra(sw_opening *o)
{
    sw_shards found SW_AUTO(sw_shards_clear) = {0};
    const sw_store *store = o->store;
    uint32_t capacity = 0;

    if (store->has_manifest)
        return take_carried(o);
    if (sw_file_kind_of(store->path) != SW_FILE_FOLDER) /* a file's neighbours are not its own */
        return consider(o, "config.json", &capacity);
    SW_TRY(sw_names_list(&found, store->path, o->err));
    for (size_t i = 0; i < found.n_names; i++)
        SW_TRY(consider(o, found.names[i], &capacity));
    return SW_OK;
}

/* ---- copying ---- */

sw_status sw_carry_write(const char *folder, const char *name, const void *bytes, size_t n_bytes,
                         sw_error *err)
{
    char *path SW_AUTO(drop_text) = sw_path_in(folder, name);

    if (path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", name);
    return sw_disk_write_file(path, bytes, n_bytes, true, err); /* publishing syncs them all */
}

static char *path_of(const sw_store *store, const char *name)
{
    return sw_path_in(store->folder[0] == '\0' ? "." : store->folder, name);
}

uint64_t sw_carry_bytes(const sw_store *store)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < store->n_extra_files; i++) {
        char *path SW_AUTO(drop_text) = path_of(store, store->extra_files[i]);
        struct stat about;
        if (path != NULL && stat(path, &about) == 0 && about.st_size > 0)
            bytes += (uint64_t)about.st_size;
    }
    return bytes;
}

/* Small file `i`, mapped; one that a manifest lists must be a file of the folder with its checksum. */
static sw_status read_small(sw_file_map *out, const sw_store *store, uint32_t i, sw_error *err)
{
    static const char help[] = "put the original back and edit the output; or take it out of 'carried' in "
                               "manifest.json: it is not carried along then";
    char *path SW_AUTO(drop_text) = path_of(store, store->extra_files[i]);
    sw_error why = {0};

    if (path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
    if (!store->has_manifest)
        return sw_file_map_open(out, path, SW_CARRY_MOST_BYTES, err);
    const sw_small_file *said = &store->carried[i];
    sw_status status = sw_expect_own_file(path, &why);
    if (status == SW_OK)
        status = sw_file_map_open(out, path, SW_CARRY_MOST_BYTES, &why);
    if (status != SW_OK)
        return SW_FAIL(err, status, help, "%s", why.what);
    if (out->n_bytes == said->n_bytes && sw_hash(out->bytes, out->n_bytes, 0) == said->hash)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, help, "%s: was edited or damaged after it was written", path);
}

sw_status sw_carry_check(const sw_store *store, sw_error *err)
{
    for (uint32_t i = 0; i < store->n_extra_files; i++) {
        sw_file_map map SW_AUTO(sw_file_map_close) = {0};
        SW_TRY(read_small(&map, store, i, err));
    }
    return SW_OK;
}

sw_status sw_carry(sw_target *target, const char *folder, uint64_t *bytes, sw_error *err)
{
    const sw_store *store = target->source;

    target->carried = sw_arena_zero(target->arena, store->n_extra_files, sizeof *target->carried);
    if (target->carried == NULL)
        return sw_arena_fail(target->arena, store->path, err);
    for (uint32_t i = 0; i < store->n_extra_files; i++) {
        const char *name = store->extra_files[i];
        sw_file_map map SW_AUTO(sw_file_map_close) = {0};
        SW_TRY(read_small(&map, store, i, err));
        SW_TRY(sw_carry_write(folder, name, map.bytes, map.n_bytes, err));
        target->carried[target->n_carried++] =
            (sw_small_file){name, map.n_bytes, sw_hash(map.bytes, map.n_bytes, 0)};
        *bytes += map.n_bytes;
    }
    return SW_OK;
}
