/*
 * Opening a model: which files make it up, and whether they agree. Headers that are present are read and win; an
 * index is checked against them; a config alone, or names whose shards are not there, get their shapes from the
 * family's table.
 */
#include "model/model.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/index.h"
#include "io/params_tsv.h"
#include "io/safetensors.h"
#include "model/complete.h"
#include "model/generate.h"

enum { MAX_FILES = 100000 };
#define MODEL_MEMORY_LIMIT ((size_t)4 << 30)

static const char index_name[] = "model.safetensors.index.json";

static void drop_list(sw_tensor_list *list)
{
    sw_tensor_list_clear(list);
}

static char *join(const char *folder, const char *name)
{
    size_t n = strlen(folder);
    size_t room = n + strlen(name) + 2;
    char *path = sw_alloc(room);

    if (path != NULL)
        (void)snprintf(path, room, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

static void drop_text(char **text)
{
    sw_free(*text);
}

static void drop_map(sw_file_map *map)
{
    sw_file_map_close(map);
}

static sw_status no_memory(sw_error *err, const char *path)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
}

/* ---- config ---- */

static sw_status read_config(sw_model *model, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(drop_map) = {0};

    SW_TRY(sw_file_map_open(&map, path, SW_CONFIG_MAX_BYTES, err));
    return sw_config_read(&model->config, map, path, err);
}

static sw_status read_config_in(sw_model *model, const char *folder, bool is_required, sw_error *err)
{
    char *path SW_AUTO(drop_text) = join(folder, "config.json");

    if (path == NULL)
        return no_memory(err, folder);
    if (sw_file_kind_of(path) == SW_FILE_ABSENT) {
        if (!is_required)
            return SW_OK;
        return SW_FAIL(err, SW_E_IO, "give a Hugging Face folder, a config.json or a .safetensors file",
                       "%s: no config.json here", folder);
    }
    return read_config(model, path, err);
}

/* ---- names of files ---- */

typedef struct names {
    char **items;
    size_t n;
    size_t capacity;
} names;

static void drop_names(names *list)
{
    for (size_t i = 0; i < list->n; i++)
        sw_free(list->items[i]);
    sw_free(list->items);
}

static bool add_name(names *list, const char *name)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        char **grown = sw_realloc(list->items, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        list->items = grown;
        list->capacity = capacity;
    }
    size_t length = strlen(name);
    char *copy = sw_alloc(length + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, name, length + 1);
    list->items[list->n++] = copy;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text);
    size_t k = strlen(tail);
    return n >= k && strcmp(text + n - k, tail) == 0;
}

/* Every *.safetensors of a folder, sorted, so that the order never depends on the file system. */
static sw_status list_shards(const char *folder, names *out, sw_error *err)
{
    DIR *dir = opendir(folder);
    sw_status status = SW_OK;

    if (dir == NULL)
        return SW_FAIL(err, SW_E_IO, "check the path and its permissions", "%s: %s", folder, strerror(errno));
    for (const struct dirent *entry = readdir(dir); entry != NULL && status == SW_OK; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, ".safetensors"))
            continue;
        if (out->n >= MAX_FILES)
            status = SW_FAIL(err, SW_E_LIMIT, "a model has far fewer files", "%s: more than %d shard files", folder,
                             MAX_FILES);
        else if (!add_name(out, entry->d_name))
            status = no_memory(err, folder);
    }
    closedir(dir);
    if (status == SW_OK && out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, compare_names);
    return status;
}

static sw_status read_shard(sw_model *model, const char *folder, const char *name, sw_error *err)
{
    char *path SW_AUTO(drop_text) = join(folder, name);

    if (path == NULL)
        return no_memory(err, folder);
    return sw_safetensors_read_file(&model->list, path, err);
}

static sw_status read_shards(sw_model *model, const char *folder, const names *shards, sw_error *err)
{
    for (size_t i = 0; i < shards->n; i++)
        SW_TRY(read_shard(model, folder, shards->items[i], err));
    return SW_OK;
}

/* ---- an index and its shards ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Every name of the index must stand in the file it names; names that only the files have are kept. */
static sw_status check_index(const sw_model *model, const sw_tensor_list *index, const char *path, sw_error *err)
{
    size_t n_missing = 0;
    const sw_tensor_entry *first = NULL;

    for (size_t i = 0; i < index->n_tensors; i++) {
        const sw_tensor_entry *want = &index->tensors[i];
        const sw_tensor_entry *have = sw_tensor_list_find(&model->list, want->name, want->name_length);
        const char *file = index->files[want->file];
        if (have == NULL) {
            first = first == NULL ? want : first;
            n_missing++;
            continue;
        }
        if (strcmp(base_name(model->list.files[have->file]), file) != 0)
            return SW_FAIL(err, SW_E_FORMAT, "repair the index from the files' headers",
                           "%s: %s is in %s, the index says %s", path, want->name,
                           base_name(model->list.files[have->file]), file);
    }
    if (n_missing == 0)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "download the file again, or repair the index from the files' headers",
                   "%s: %s is not in %s (%zu names of the index are not in their files)", path, first->name,
                   index->files[first->file], n_missing);
}

static bool is_among(const names *shards, const char *file)
{
    for (size_t i = 0; i < shards->n; i++) {
        if (strcmp(shards->items[i], file) == 0)
            return true;
    }
    return false;
}

/* Some shards but not all: what is missing decides, and must be named. */
static sw_status report_missing(const sw_tensor_list *index, const names *shards, const char *path, sw_error *err)
{
    char list[256] = "";
    size_t used = 0;
    uint32_t n_files = 0;
    size_t n_tensors = 0;

    for (uint32_t f = 0; f < index->n_files; f++) {
        if (is_among(shards, index->files[f]))
            continue;
        if (n_files < 4 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n_files == 0 ? "" : ", ",
                                     index->files[f]);
        n_files++;
        for (size_t i = 0; i < index->n_tensors; i++)
            n_tensors += index->tensors[i].file == f;
    }
    return SW_FAIL(err, SW_E_FORMAT, "download the missing files, or remove all shards to plan from the index alone",
                   "%s: %u of %u files are missing, with %zu tensors: %s%s", path, n_files, index->n_files, n_tensors,
                   list, n_files > 4 ? " ..." : "");
}

static sw_status take_index(sw_model *model, const sw_tensor_list *index, sw_error *err)
{
    for (uint32_t f = 0; f < index->n_files; f++) {
        uint32_t unused = 0;
        SW_TRY(sw_tensor_list_add_file(&model->list, index->files[f], &unused, err));
    }
    for (size_t i = 0; i < index->n_tensors; i++) {
        const sw_tensor_entry *t = &index->tensors[i];
        SW_TRY(sw_tensor_list_add(&model->list, t->name, t->name_length, SW_DTYPE_UNKNOWN, NULL, t->file, 0, err));
    }
    return sw_complete_shapes(&model->list, model->family, &model->config, err);
}

static sw_status read_index(sw_model *model, const char *folder, const char *path, const names *shards, sw_error *err)
{
    sw_tensor_list index SW_AUTO(drop_list) = {0};
    sw_file_map map SW_AUTO(drop_map) = {0};
    uint32_t present = 0;

    SW_TRY(sw_tensor_list_init(&index, MODEL_MEMORY_LIMIT, err));
    SW_TRY(sw_file_map_open(&map, path, SW_INDEX_MAX_BYTES, err));
    SW_TRY(sw_index_read(&index, map, path, err));
    for (uint32_t f = 0; f < index.n_files; f++)
        present += is_among(shards, index.files[f]);
    if (present == 0)
        return take_index(model, &index, err);
    if (present < index.n_files)
        return report_missing(&index, shards, path, err);
    for (size_t i = 0; i < shards->n; i++) {
        bool listed = false;
        for (uint32_t f = 0; f < index.n_files && !listed; f++)
            listed = strcmp(index.files[f], shards->items[i]) == 0;
        if (listed)
            SW_TRY(read_shard(model, folder, shards->items[i], err));
    }
    return check_index(model, &index, path, err);
}

/* ---- kinds of MODEL ---- */

static sw_status read_params_tsv(sw_model *model, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(drop_map) = {0};

    SW_TRY(sw_file_map_open(&map, path, SW_PARAMS_TSV_MAX_BYTES, err));
    return sw_params_tsv_read(&model->list, map, path, err);
}

static sw_status generate(sw_model *model, const char *path, sw_error *err)
{
    if (model->family == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "add the checkpoint's index or a params.tsv beside it",
                       "%s: no table for architecture '%s', so its parameters are not known from the config alone",
                       path, model->config.architecture[0] != '\0' ? model->config.architecture
                                                                     : model->config.model_type);
    return sw_generate_tensors(&model->list, model->family, &model->config, err);
}

static sw_status read_folder(sw_model *model, const char *folder, sw_error *err)
{
    names shards SW_AUTO(drop_names) = {0};
    char *index SW_AUTO(drop_text) = join(folder, index_name);
    char *tsv SW_AUTO(drop_text) = join(folder, "params.tsv");

    if (index == NULL || tsv == NULL)
        return no_memory(err, folder);
    SW_TRY(list_shards(folder, &shards, err));
    bool has_names = shards.n > 0 || sw_file_kind_of(index) == SW_FILE_REGULAR;
    SW_TRY(read_config_in(model, folder, !has_names, err));
    model->family = model->config.family;
    if (sw_file_kind_of(index) == SW_FILE_REGULAR)
        return read_index(model, folder, index, &shards, err);
    if (shards.n > 0)
        return read_shards(model, folder, &shards, err);
    if (sw_file_kind_of(tsv) == SW_FILE_REGULAR)
        return read_params_tsv(model, tsv, err);
    return generate(model, folder, err);
}

/* The folder of a file, "." for a bare name. */
static char *folder_of(const char *path)
{
    size_t n = (size_t)(base_name(path) - path);
    char *folder = sw_alloc(n + 2);

    if (folder == NULL)
        return NULL;
    if (n == 0)
        folder[n++] = '.';
    else
        memcpy(folder, path, n);
    folder[n] = '\0';
    return folder;
}

static sw_status read_file(sw_model *model, const char *path, sw_error *err)
{
    char *folder SW_AUTO(drop_text) = folder_of(path);

    if (folder == NULL)
        return no_memory(err, path);
    if (ends_with(path, ".safetensors")) {
        SW_TRY(read_config_in(model, folder, false, err));
        model->family = model->config.family;
        return sw_safetensors_read_file(&model->list, path, err);
    }
    if (ends_with(path, ".index.json")) {
        names shards SW_AUTO(drop_names) = {0};
        SW_TRY(list_shards(folder, &shards, err));
        SW_TRY(read_config_in(model, folder, false, err));
        model->family = model->config.family;
        return read_index(model, folder, path, &shards, err);
    }
    if (ends_with(path, ".json")) {
        SW_TRY(read_config(model, path, err));
        model->family = model->config.family;
        return generate(model, path, err);
    }
    return SW_FAIL(err, SW_E_FORMAT, "give a folder, a config.json, an index or a .safetensors file",
                   "%s: not a model", path);
}

static sw_status read_any(sw_model *model, const char *path, sw_error *err)
{
    switch (sw_file_kind_of(path)) {
    case SW_FILE_FOLDER:
        return read_folder(model, path, err);
    case SW_FILE_REGULAR:
        return read_file(model, path, err);
    case SW_FILE_ABSENT:
        return SW_FAIL(err, SW_E_IO, "check the path", "%s: no such file or folder", path);
    default:
        return SW_FAIL(err, SW_E_FORMAT, "give a folder or a regular file", "%s: neither a folder nor a file", path);
    }
}

/* Lower case without task suffixes, underscores kept: "qwen2moe", or "qwen2_moe" from a model type. */
static void architecture_name(const char *raw, char *out, size_t capacity)
{
    static const char *const suffixes[] = {"forcausallm", "forconditionalgeneration", "forsequenceclassification",
                                           "forimagetexttotext"};
    size_t n = 0;

    for (; raw != NULL && raw[n] != '\0' && n + 1 < capacity; n++)
        out[n] = (char)tolower((unsigned char)raw[n]);
    out[n] = '\0';
    for (size_t i = 0; i < SW_COUNT(suffixes); i++) {
        if (ends_with(out, suffixes[i]))
            out[strlen(out) - strlen(suffixes[i])] = '\0';
    }
}

static sw_status name_architecture(sw_model *model, sw_error *err)
{
    const char *raw = model->config.architecture;
    char name[256];

    if (raw == NULL || raw[0] == '\0')
        raw = model->config.model_type;
    architecture_name(raw, name, sizeof name);
    model->architecture = sw_arena_format(model->arena, "%s", name);
    return model->architecture == NULL ? no_memory(err, model->path) : SW_OK;
}

sw_status sw_model_open(sw_model **out, const char *path, sw_error *err)
{
    sw_model *model = sw_alloc_zero(1, sizeof *model);
    sw_status status = SW_OK;

    *out = NULL;
    if (model == NULL)
        return no_memory(err, path);
    model->arena = sw_arena_create(MODEL_MEMORY_LIMIT);
    model->path = model->arena == NULL ? NULL : sw_arena_format(model->arena, "%s", path);
    if (model->path == NULL)
        status = no_memory(err, path);
    if (status == SW_OK)
        status = sw_tensor_list_init(&model->list, MODEL_MEMORY_LIMIT, err);
    if (status == SW_OK)
        status = read_any(model, path, err);
    if (status == SW_OK && model->list.n_tensors == 0)
        status = SW_FAIL(err, SW_E_FORMAT, "give a model with parameters", "%s: holds no tensor", path);
    if (status == SW_OK)
        status = name_architecture(model, err);
    if (status == SW_OK)
        status = sw_model_build(model, err);
    if (status != SW_OK) {
        sw_model_close(model);
        return status;
    }
    *out = model;
    return SW_OK;
}

void sw_model_close(sw_model *model)
{
    if (model == NULL)
        return;
    sw_tensor_list_clear(&model->list);
    sw_config_clear(&model->config);
    sw_arena_destroy(model->arena);
    sw_free(model->params);
    sw_free(model->modules);
    sw_free(model->patterns);
    sw_free(model);
}

/* ---- reading a model ---- */

size_t sw_model_param_count(const sw_model *model)
{
    return model->n_params;
}

bool sw_model_param(const sw_model *model, size_t i, sw_param_info *out)
{
    if (i >= model->n_params)
        return false;
    const sw_tensor_entry *t = sw_model_tensor(model, (uint32_t)i);
    *out = (sw_param_info){t->name, t->dtype, t->shape == NULL ? 0 : t->shape->n_dims,
                           t->shape == NULL ? NULL : t->shape->dims};
    return true;
}

const char *sw_model_architecture(const sw_model *model)
{
    return model->architecture;
}

const char *sw_model_type(const sw_model *model)
{
    return model->config.model_type == NULL ? "" : model->config.model_type;
}

uint64_t sw_model_elements(const sw_model *model)
{
    return model->elements;
}

uint64_t sw_model_fingerprint(const sw_model *model)
{
    return model->fingerprint;
}

bool sw_model_attribute(const sw_model *model, sw_attr attr, int64_t *value)
{
    const sw_attributes *a = &model->config.attributes;

    if ((unsigned)attr >= SW_ATTR_COUNT_ || !a->is_set[attr])
        return false;
    *value = a->value[attr];
    return true;
}
