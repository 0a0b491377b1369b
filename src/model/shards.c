/*
 * Shards and their index. An index is only names: whether a file is there is asked of the file system, by the
 * name that the index gives, however odd. Everything is linear in names and files, since both may come from a
 * hostile index.
 */
#include "model/shards.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "io/index.h"
#include "io/safetensors.h"
#include "model/complete.h"

static const char ending[] = ".safetensors";

static void drop_text(char **text)
{
    sw_free(*text);
}

static void drop_dir(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir);
}

static sw_status no_memory(sw_error *err, const char *path)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
}

/* ---- paths ---- */

char *sw_path_in(const char *folder, const char *name)
{
    size_t n = strlen(folder);
    size_t room = n + strlen(name) + 2;
    char *path = sw_alloc(room);

    if (path != NULL)
        (void)snprintf(path, room, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

sw_status sw_expect_file(const char *path, sw_error *err)
{
    sw_file_kind kind = sw_file_kind_of(path);

    if (kind != SW_FILE_FOLDER && kind != SW_FILE_OTHER)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "put the file itself there, or take this away", "%s: is %s, not a file",
                   path, kind == SW_FILE_FOLDER ? "a folder" : "a pipe, socket or device");
}

sw_status sw_map_text(sw_file_map *out, const char *path, uint64_t limit, sw_error *err)
{
    SW_TRY(sw_expect_file(path, err));
    SW_TRY(sw_file_map_open(out, path, limit, err));
    if (!sw_file_is_lfs_pointer(*out))
        return SW_OK;
    sw_file_map_close(out);
    return SW_FAIL(err, SW_E_FORMAT, "run 'git lfs pull' to get the file itself", "%s: is a Git LFS pointer",
                   path);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* ---- files of a folder ---- */

void sw_shards_clear(sw_shards *shards)
{
    for (size_t i = 0; i < shards->n_names; i++)
        sw_free(shards->names[i]);
    sw_free(shards->names);
    *shards = (sw_shards){0};
}

static bool add_name(sw_shards *shards, const char *name)
{
    if (shards->n_names == shards->capacity) {
        size_t capacity = shards->capacity == 0 ? 16 : shards->capacity * 2;
        char **grown = sw_realloc(shards->names, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        shards->names = grown;
        shards->capacity = capacity;
    }
    size_t room = strlen(name) + 1;
    char *copy = sw_alloc(room);
    if (copy == NULL)
        return false;
    memcpy(copy, name, room);
    shards->names[shards->n_names++] = copy;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool sw_is_shard(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && n >= sizeof ending && strcmp(name + n - (sizeof ending - 1), ending) == 0;
}

bool sw_is_state_file(const char *name)
{
    static const char prefix[] = "optimizer-";

    return strncmp(name, prefix, sizeof prefix - 1) == 0;
}

static bool is_entry(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static sw_status list_names(sw_shards *out, const char *folder, bool (*is_wanted)(const char *name),
                            sw_error *err)
{
    DIR *dir SW_AUTO(drop_dir) = opendir(folder);

    if (dir == NULL) {
        char space[128];
        int code = errno;
        return SW_FAIL(err, SW_E_IO, sw_errno_help(code, "check the path and its permissions"),
                       "%s: cannot read the folder: %s", folder, strerror_r(code, space, sizeof space));
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!is_wanted(entry->d_name))
            continue;
        if (out->n_names == SW_MAX_SHARDS)
            return SW_FAIL(err, SW_E_LIMIT, "check that this is a model's folder", "%s: more than %d files",
                           folder, SW_MAX_SHARDS);
        if (!add_name(out, entry->d_name))
            return no_memory(err, folder);
    }
    if (out->n_names > 1)
        qsort(out->names, out->n_names, sizeof *out->names, compare_names);
    return SW_OK;
}

sw_status sw_shards_list(sw_shards *out, const char *folder, sw_error *err)
{
    return list_names(out, folder, sw_is_shard, err);
}

sw_status sw_names_list(sw_shards *out, const char *folder, sw_error *err)
{
    return list_names(out, folder, is_entry, err);
}

sw_status sw_shards_list_model(sw_shards *out, const char *folder, sw_error *err)
{
    size_t n = 0;

    SW_TRY(sw_shards_list(out, folder, err));
    for (size_t i = 0; i < out->n_names; i++) {
        if (sw_is_state_file(out->names[i]))
            sw_free(out->names[i]);
        else
            out->names[n++] = out->names[i];
    }
    out->n_names = n;
    return SW_OK;
}

static sw_status read_one(sw_model *model, const char *folder, const char *name, sw_error *err)
{
    char *path SW_AUTO(drop_text) = sw_path_in(folder, name);

    if (path == NULL)
        return no_memory(err, folder);
    SW_TRY(sw_expect_file(path, err));
    return sw_safetensors_read_file(&model->list, path, err);
}

/* How many files a name says there are ("model-00002-of-00005.safetensors": 5), 0 when it does not; and the
 * length of what stands before its number. */
static uint64_t files_of_set(const char *name, size_t *prefix)
{
    static const char of[] = "-of-";
    const char *mark = strstr(name, of);
    char *end = NULL;

    if (mark == NULL)
        return 0;
    const char *number = mark;
    while (number > name && number[-1] >= '0' && number[-1] <= '9')
        number--;
    const char *total = mark + strlen(of);
    if (number == mark || *total < '0' || *total > '9')
        return 0;
    *prefix = (size_t)(number - name);
    uint64_t n = strtoull(total, &end, 10);
    return strcmp(end, ending) == 0 ? n : 0;
}

/* Without an index the names alone tell that an interrupted download left some files out. */
static sw_status remark_missing_files(sw_model *model, const sw_shards *shards, sw_error *err)
{
    for (size_t first = 0, after = 0; first < shards->n_names; first = after) {
        size_t prefix = 0;
        uint64_t n = files_of_set(shards->names[first], &prefix);
        for (after = first + 1; after < shards->n_names; after++) {
            size_t other = 0;
            if (files_of_set(shards->names[after], &other) != n || other != prefix ||
                memcmp(shards->names[after], shards->names[first], prefix) != 0)
                break;
        }
        if (n > after - first) {
            SW_TRY(sw_model_remark(model, SW_SEVERITY_WARNING, "files_missing", "",
                                   "download the missing files; the index would tell what they hold", err,
                                   "%" PRIu64 " of %" PRIu64 " files are missing beside %s",
                                   n - (after - first), n, shards->names[first]));
        }
    }
    return SW_OK;
}

sw_status sw_shards_read(sw_model *model, const char *folder, const sw_shards *shards, sw_error *err)
{
    SW_TRY(remark_missing_files(model, shards, err));
    for (size_t i = 0; i < shards->n_names; i++)
        SW_TRY(read_one(model, folder, shards->names[i], err));
    return SW_OK;
}

/* ---- an index ---- */

/* What an index says of one of its files. */
typedef struct listed {
    bool is_present;
    uint32_t first; /* its first tensor in the index */
    uint32_t n_tensors;
} listed;

typedef struct index_check {
    sw_model *model;
    const char *folder;
    const char *path;
    sw_tensor_list list; /* the index */
    listed *files;       /* per file of the list */
    uint32_t n_present;
    sw_error *err;
} index_check;

static void drop_check(index_check *check)
{
    sw_tensor_list_clear(&check->list);
    sw_free(check->files);
}

static sw_status look_at_files(index_check *c)
{
    c->files = sw_alloc_zero(c->list.n_files + 1, sizeof *c->files);
    if (c->files == NULL)
        return no_memory(c->err, c->path);
    for (size_t i = c->list.n_tensors; i-- > 0;) {
        listed *file = &c->files[c->list.tensors[i].file];
        file->first = (uint32_t)i;
        file->n_tensors++;
    }
    for (uint32_t f = 0; f < c->list.n_files; f++) {
        char *path SW_AUTO(drop_text) = sw_path_in(c->folder, c->list.files[f]);
        if (path == NULL)
            return no_memory(c->err, c->path);
        c->files[f].is_present = sw_file_kind_of(path) != SW_FILE_ABSENT;
        c->n_present += c->files[f].is_present;
    }
    return SW_OK;
}

static sw_status read_list(index_check *c)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_TRY(sw_tensor_list_init(&c->list, SW_TENSOR_LIST_BYTES, c->err));
    SW_TRY(sw_map_text(&map, c->path, SW_INDEX_MAX_BYTES, c->err));
    SW_TRY(sw_index_read(&c->list, map, c->path, c->err));
    if (c->list.n_files > SW_MAX_SHARDS)
        return SW_FAIL(c->err, SW_E_LIMIT, "check that this is an index",
                       "%s: names %" PRIu32 " files, at most %d", c->path, c->list.n_files, SW_MAX_SHARDS);
    return look_at_files(c);
}

/* Some files are there and some are not: which ones decides what is wrong, so they are named with what they
 * hold. */
static sw_status report_missing(const index_check *c)
{
    char text[320] = "";
    size_t used = 0;
    uint32_t n_shown = 0;
    uint32_t n_missing = c->list.n_files - c->n_present;
    uint64_t n_tensors = 0;

    for (uint32_t f = 0; f < c->list.n_files; f++) {
        const listed *file = &c->files[f];
        if (file->is_present)
            continue;
        n_tensors += file->n_tensors;
        if (n_shown == 3)
            continue;
        int n = snprintf(text + used, sizeof text - used, "%s%.80s (%" PRIu32 ": %.60s%s)",
                         n_shown++ == 0 ? "" : ", ", c->list.files[f], file->n_tensors,
                         c->list.tensors[file->first].name, file->n_tensors > 1 ? " ..." : "");
        used = used + (size_t)n < sizeof text ? used + (size_t)n : sizeof text - 1;
    }
    return SW_FAIL(c->err, SW_E_FORMAT,
                   "download the missing files, or remove all of them to plan from the index alone",
                   "%s: %" PRIu32 " of %" PRIu32 " files are missing, with %" PRIu64 " tensors: %s%s",
                   c->path, n_missing, c->list.n_files, n_tensors, text, n_missing > n_shown ? ", ..." : "");
}

/* Names that the files have and the index lacks: kept, since the files are the truth. */
static sw_status remark_omitted(const index_check *c)
{
    const sw_tensor_list *have = &c->model->list;
    const sw_tensor_entry *first = NULL;

    if (have->n_tensors ==
        c->list.n_tensors) /* every name of the index was found: these are the same names */
        return SW_OK;
    for (size_t i = 0; i < have->n_tensors && first == NULL; i++) {
        const sw_tensor_entry *t = &have->tensors[i];
        if (sw_tensor_list_find(&c->list, t->name, t->name_length) == NULL)
            first = t;
    }
    if (first == NULL)
        return SW_OK;
    size_t n = have->n_tensors - c->list.n_tensors;
    return sw_model_remark(
        c->model, SW_SEVERITY_WARNING, "index_omits", first->name,
        "write the index again from the files' headers; other programs will not see these tensors", c->err,
        "%zu tensor%s in the files and not in %s, the first in %s", n, n == 1 ? " stands" : "s stand",
        base_name(c->path), base_name(have->files[first->file]));
}

/* Every name of the index must stand in the file that it names. */
static sw_status compare_with_headers(const index_check *c)
{
    size_t n_missing = 0;
    const sw_tensor_entry *first = NULL;

    for (size_t i = 0; i < c->list.n_tensors; i++) {
        const sw_tensor_entry *want = &c->list.tensors[i];
        const sw_tensor_entry *have = sw_tensor_list_find(&c->model->list, want->name, want->name_length);
        if (have == NULL) {
            first = first == NULL ? want : first;
            n_missing++;
            continue;
        }
        const char *file = base_name(c->model->list.files[have->file]);
        if (strcmp(file, c->list.files[want->file]) != 0)
            return SW_FAIL(c->err, SW_E_FORMAT, "write the index again from the files' headers",
                           "%s: %.150s is in %.100s, the index says %.100s", c->path, want->name, file,
                           c->list.files[want->file]);
    }
    if (n_missing == 0)
        return remark_omitted(c);
    return SW_FAIL(c->err, SW_E_FORMAT,
                   "download the file again, or write the index again from the files' headers",
                   "%s: %.150s is not in %.100s (%zu names of the index are in no file)", c->path,
                   first->name, c->list.files[first->file], n_missing);
}

/* Files beside the index that it does not name: another form of the weights, or left over. */
static sw_status remark_unlisted(const index_check *c, const sw_shards *shards)
{
    sw_map listed_names SW_AUTO(sw_map_clear) = {0};
    const char *first = NULL;
    size_t n = 0;

    for (uint32_t f = 0; f < c->list.n_files && shards->n_names > 0; f++) {
        bool is_new = false;
        if (sw_map_put(&listed_names, c->list.files[f], strlen(c->list.files[f]), f, &is_new) == NULL)
            return no_memory(c->err, c->path);
    }
    for (size_t i = 0; i < shards->n_names; i++) {
        if (sw_map_find(&listed_names, shards->names[i], strlen(shards->names[i])) != NULL)
            continue;
        first = first == NULL ? shards->names[i] : first;
        n++;
    }
    if (first == NULL)
        return SW_OK;
    return sw_model_remark(c->model, SW_SEVERITY_WARNING, "file_unlisted", "",
                           "move it away when it is left over; give it alone to plan it", c->err,
                           n == 1 ? "%zu file beside %s is not in it and is not read: %.200s"
                                  : "%zu files beside %s are not in it and are not read, the first is %.200s",
                           n, base_name(c->path), first);
}

/* Names alone: the list of the index becomes the model's. */
static sw_status take_names(index_check *c)
{
    sw_model *model = c->model;
    sw_tensor_list empty = model->list;
    sw_error why = {0};

    model->list = c->list;
    c->list = empty;
    SW_TRY(sw_complete_shapes(&model->list, model->family, &model->config, &why, c->err));
    if (why.status == SW_OK)
        return SW_OK;
    return sw_model_remark(model, SW_SEVERITY_NOTE, "no_shapes", "", why.help, c->err,
                           "only the index is there, and shapes do not follow from the config: %s", why.what);
}

sw_status sw_shards_read_index(sw_model *model, const char *folder, const char *index_path,
                               const sw_shards *shards, sw_error *err)
{
    index_check c SW_AUTO(drop_check) = {.model = model, .folder = folder, .path = index_path, .err = err};

    SW_TRY(read_list(&c));
    SW_TRY(remark_unlisted(&c, shards));
    if (c.n_present == 0)
        return take_names(&c);
    if (c.n_present < c.list.n_files)
        return report_missing(&c);
    SW_TRY(sw_tensor_list_reserve(&model->list, c.list.n_tensors, err));
    for (uint32_t f = 0; f < c.list.n_files; f++)
        SW_TRY(read_one(model, folder, c.list.files[f], err));
    return compare_with_headers(&c);
}
