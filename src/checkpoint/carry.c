/*
 * Small files that go along (checkpoint/carry.h). Taken: regular files of the folder up to a limit, and what
 * links lead to that stay inside it, or inside the download cache that it is a snapshot of: a stranger's
 * folder must not be able to have other files of ours copied. Not taken: tensors, what the tensors' own
 * formats write anew, hidden files, folders.
 */
#include "checkpoint/carry.h"

#include <dirent.h>
#include <errno.h>
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
#include "model/shards.h"

static void drop_dir(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir);
}

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
static const char *reason_against(const char *folder, const char *path)
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
    const char *reason = reason_against(store->folder, path);
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

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

sw_status sw_opening_extra(sw_opening *o)
{
    sw_store *store = o->store;
    uint32_t capacity = 0;

    if (sw_file_kind_of(store->path) != SW_FILE_FOLDER) /* a file's neighbours are not its own */
        return consider(o, "config.json", &capacity);
    DIR *dir SW_AUTO(drop_dir) = opendir(store->path);
    if (dir == NULL) {
        char space[128];
        return SW_FAIL(o->err, SW_E_IO, "check the path and its permissions",
                       "%s: cannot read the folder: %s", store->path, strerror_r(errno, space, sizeof space));
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        SW_TRY(consider(o, entry->d_name, &capacity));
    if (store->n_extra_files > 1)
        qsort(store->extra_files, store->n_extra_files, sizeof *store->extra_files, compare_names);
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

sw_status sw_carry(sw_target *target, const char *folder, uint64_t *bytes, sw_error *err)
{
    const sw_store *store = target->source;

    target->carried = sw_arena_zero(target->arena, store->n_extra_files, sizeof *target->carried);
    if (target->carried == NULL)
        return sw_arena_fail(target->arena, store->path, err);
    for (uint32_t i = 0; i < store->n_extra_files; i++) {
        const char *name = store->extra_files[i];
        char *path SW_AUTO(drop_text) = path_of(store, name);
        sw_file_map map SW_AUTO(sw_file_map_close) = {0};
        if (path == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
        SW_TRY(sw_file_map_open(&map, path, SW_CARRY_MOST_BYTES, err));
        SW_TRY(sw_carry_write(folder, name, map.bytes, map.n_bytes, err));
        target->carried[target->n_carried++] =
            (sw_small_file){name, map.n_bytes, sw_hash(map.bytes, map.n_bytes, 0)};
        *bytes += map.n_bytes;
    }
    return SW_OK;
}
