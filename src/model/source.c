/*
 * Opening a model: what kind of thing MODEL is, and what is read from it. Headers that are present are read
 * and win over an index; names without headers, and a config alone, get their shapes from the family's table.
 * The kinds and their order are those of docs/reference/inputs.md.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "io/params_tsv.h"
#include "io/safetensors.h"
#include "model/generate.h"
#include "model/model.h"
#include "model/shards.h"

/* Patterns and remarks; the tensors have a list of their own. */
#define MODEL_MEMORY_LIMIT ((size_t)64 << 20)

/* Bytes of the names that a config alone may describe: a million of the usual ones. */
#define GENERATED_NAMES_LIMIT ((size_t)48 << 20)

static void drop_text(char **text)
{
    sw_free(*text);
}

static sw_status no_memory(sw_error *err, const char *path)
{
    return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", path);
}

/* ---- single files ---- */

static sw_status take_config(sw_model *model, const char *path, sw_file_map map, sw_error *err)
{
    SW_TRY(sw_config_read(&model->config, map, path, err));
    model->family = model->config.family;
    for (const sw_ignored_key *key = model->config.ignored; key != NULL; key = key->next)
        SW_TRY(sw_model_remark(model, SW_SEVERITY_WARNING, "config_value", "",
                               "nothing, unless a cut needs it; else correct the config", err,
                               "%s: %s: it counts as not given", path, key->text));
    return SW_OK;
}

static sw_status read_config(sw_model *model, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_TRY(sw_map_text(&map, path, SW_CONFIG_MAX_BYTES, err));
    return take_config(model, path, map, err);
}

static sw_status read_config_in(sw_model *model, const char *folder, sw_error *err)
{
    char *path SW_AUTO(drop_text) = sw_path_in(folder, "config.json");

    if (path == NULL)
        return no_memory(err, folder);
    return sw_file_kind_of(path) == SW_FILE_ABSENT ? SW_OK : read_config(model, path, err);
}

static sw_status read_params_tsv(sw_model *model, const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    SW_TRY(sw_map_text(&map, path, SW_PARAMS_TSV_MAX_BYTES, err));
    return sw_params_tsv_read(&model->list, map, path, err);
}

/* Names and shapes from the config alone. */
static sw_status generate(sw_model *model, const char *path, sw_error *err)
{
    sw_tensor_list_clear(&model->list);
    SW_TRY(sw_tensor_list_init(&model->list, GENERATED_NAMES_LIMIT, err));
    sw_status status = sw_generate_tensors(&model->list, model->family, &model->config, err);
    if (status != SW_OK)
        sw_error_context(err, "%.200s", path);
    return status;
}

/* ---- kinds of MODEL ---- */

static sw_status read_names_in(sw_model *model, const char *folder, const sw_shards *shards, sw_error *err)
{
    char *index SW_AUTO(drop_text) = sw_path_in(folder, "model.safetensors.index.json");
    char *tsv SW_AUTO(drop_text) = sw_path_in(folder, "params.tsv");

    if (index == NULL || tsv == NULL)
        return no_memory(err, folder);
    if (sw_file_kind_of(index) != SW_FILE_ABSENT)
        return sw_shards_read_index(model, folder, index, shards, err);
    if (shards->n_names > 0)
        return sw_shards_read(model, folder, shards, err);
    if (sw_file_kind_of(tsv) != SW_FILE_ABSENT)
        return read_params_tsv(model, tsv, err);
    if (model->config.arena != NULL)
        return generate(model, folder, err);
    return SW_FAIL(err, SW_E_FORMAT, "give a Hugging Face folder, a config.json or a .safetensors file",
                   "%s: neither config.json nor *.safetensors nor their index is in this folder", folder);
}

static sw_status read_folder(sw_model *model, const char *folder, sw_error *err)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};

    SW_TRY(sw_shards_list_model(&shards, folder, err));
    SW_TRY(read_config_in(model, folder, err));
    return read_names_in(model, folder, &shards, err);
}

static sw_status read_tensor_file(sw_model *model, const char *path, const char *folder, sw_error *err)
{
    SW_TRY(read_config_in(model, folder, err));
    return sw_safetensors_read_file(&model->list, path, err);
}

static sw_status read_index_file(sw_model *model, const char *path, const char *folder, sw_error *err)
{
    sw_shards shards SW_AUTO(sw_shards_clear) = {0};

    SW_TRY(sw_shards_list_model(&shards, folder, err));
    SW_TRY(read_config_in(model, folder, err));
    return sw_shards_read_index(model, folder, path, &shards, err);
}

static sw_status read_config_alone(sw_model *model, const char *path, const char *folder, sw_error *err)
{
    (void)folder;
    SW_TRY(read_config(model, path, err));
    return generate(model, path, err);
}

static sw_status read_tsv_file(sw_model *model, const char *path, const char *folder, sw_error *err)
{
    SW_TRY(read_config_in(model, folder, err));
    return read_params_tsv(model, path, err);
}

typedef struct file_kind {
    const char *ending;
    sw_status (*read)(sw_model *model, const char *path, const char *folder, sw_error *err);
} file_kind;

static const file_kind file_kinds[] = {
    {".safetensors", read_tensor_file },
    {".index.json",  read_index_file  },
    {".json",        read_config_alone},
    {".tsv",         read_tsv_file    },
};

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text);
    size_t k = strlen(tail);
    return n >= k && strcmp(text + n - k, tail) == 0;
}

static sw_status read_file(sw_model *model, const char *path, sw_error *err)
{
    char *folder SW_AUTO(drop_text) = sw_folder_of(path);

    if (folder == NULL)
        return no_memory(err, path);
    for (size_t i = 0; i < SW_COUNT(file_kinds); i++) {
        if (ends_with(path, file_kinds[i].ending))
            return file_kinds[i].read(model, path, folder, err);
    }
    return SW_FAIL(err, SW_E_FORMAT,
                   "give a Hugging Face folder, a config.json, an index or a .safetensors file",
                   "%s: no model is read from a file of this name", path);
}

/* The reason why it cannot be opened. */
static sw_status fail_unreachable(const char *path, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    uint64_t n_bytes = 0;

    SW_TRY(sw_file_map_head(&map, path, 0, &n_bytes, err));
    return SW_FAIL(err, SW_E_FORMAT, "run again", "%s: was not there a moment ago", path);
}

static sw_status read_any(sw_model *model, const char *path, sw_error *err)
{
    switch (sw_file_kind_of(path)) {
    case SW_FILE_FOLDER:
        return read_folder(model, path, err);
    case SW_FILE_REGULAR:
        return read_file(model, path, err);
    case SW_FILE_OTHER:
        return SW_FAIL(err, SW_E_FORMAT, "give a folder or a regular file",
                       "%s: is a pipe, socket or device, not a model", path);
    case SW_FILE_UNREACHABLE:
        return fail_unreachable(path, err);
    case SW_FILE_ABSENT:
        break;
    }
    return SW_FAIL(err, SW_E_FORMAT, "check the path and its permissions", "%s: no such file or folder",
                   path);
}

/* ---- the whole ---- */

static sw_status name_architecture(sw_model *model, sw_error *err)
{
    char name[256];
    size_t n = sw_architecture_normalise(model->config.architecture, name, sizeof name);

    if (n == 0)
        n = sw_architecture_normalise(model->config.model_type, name, sizeof name);
    model->architecture = sw_arena_copy(model->arena, name, n);
    return model->architecture == NULL ? no_memory(err, model->path) : SW_OK;
}

/* Readers guess how many tensors there will be: give back what they did not need. */
static void trim(sw_tensor_list *list)
{
    sw_tensor_entry *fitted = sw_realloc(list->tensors, list->n_tensors * sizeof *fitted);

    if (fitted == NULL)
        return;
    list->tensors = fitted;
    list->capacity = list->n_tensors;
}

static sw_status begin(sw_model *model, const char *path, sw_error *err)
{
    model->arena = sw_arena_create(MODEL_MEMORY_LIMIT);
    model->path = model->arena == NULL ? NULL : sw_arena_copy(model->arena, path, strlen(path));
    return model->path == NULL ? no_memory(err, path) : SW_OK;
}

static sw_status remark_unknown_dtypes(sw_model *model, sw_error *err)
{
    const sw_unknown_dtype *u = &model->list.unknown;

    if (u->n == 0)
        return SW_OK;
    return sw_model_remark(model, SW_SEVERITY_WARNING, "dtype_unknown", u->name,
                           "check the word; whole rows are carried, and what is cut inside a row is refused",
                           err, "the dtype '%s' is not known (%zu tensor%s of such)", u->word, u->n,
                           u->n == 1 ? "" : "s");
}

static sw_status finish(sw_model *model, sw_error *err)
{
    if (model->list.n_tensors == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give a model with parameters", "%s: holds no tensor", model->path);
    trim(&model->list);
    SW_TRY(remark_unknown_dtypes(model, err));
    SW_TRY(name_architecture(model, err));
    return sw_model_build(model, err);
}

static sw_status fill(sw_model *model, const char *path, sw_error *err)
{
    SW_TRY(begin(model, path, err));
    SW_TRY(sw_tensor_list_init(&model->list, SW_TENSOR_LIST_BYTES, err));
    SW_TRY(read_any(model, path, err));
    return finish(model, err);
}

static sw_status fill_from_list(sw_model *model, const char *path, const char *folder, sw_error *err)
{
    SW_TRY(begin(model, path, err));
    SW_TRY(read_config_in(model, folder, err));
    return finish(model, err);
}

static sw_status fill_from_config(sw_model *model, const char *path, sw_file_map map, sw_error *err)
{
    SW_TRY(begin(model, path, err));
    SW_TRY(take_config(model, path, map, err));
    SW_TRY(generate(model, path, err));
    return finish(model, err);
}

/* Hand over what was made, or close it. */
static sw_status settle(sw_model **out, sw_model *model, sw_status status)
{
    *out = status == SW_OK ? model : NULL;
    if (status != SW_OK)
        sw_model_close(model);
    return status;
}

sw_status sw_model_open(sw_model **out, const char *path, sw_error *err)
{
    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(path, err);
    sw_model *model = sw_alloc_zero(1, sizeof *model);
    if (model == NULL)
        return no_memory(err, path);
    return settle(out, model, fill(model, path, err));
}

sw_status sw_model_of_list(sw_model **out, const char *path, const char *folder, sw_tensor_list *list,
                           sw_error *err)
{
    sw_model *model = sw_alloc_zero(1, sizeof *model);

    *out = NULL;
    if (model == NULL) {
        sw_tensor_list_clear(list);
        return no_memory(err, path);
    }
    model->list = *list;
    *list = (sw_tensor_list){0};
    return settle(out, model, fill_from_list(model, path, folder, err));
}

sw_status sw_model_of_config(sw_model **out, const char *path, sw_file_map map, sw_error *err)
{
    sw_model *model = sw_alloc_zero(1, sizeof *model);

    *out = NULL;
    if (model == NULL)
        return no_memory(err, path);
    return settle(out, model, fill_from_config(model, path, map, err));
}
