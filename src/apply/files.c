/* Tensors of checkpoints (apply/files.h). */
#include "apply/files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/store.h"

static sw_status open_all(sw_files *files, const char *path, sw_error *err)
{
    SW_TRY(sw_store_open(&files->store, path, &(sw_store_options){0}, err));
    if (files->store->kind != SW_STORE_HF)
        return SW_FAIL(err, SW_E_FORMAT, "merge it first", "%s: a sharded folder", path);
    files->maps = sw_alloc_zero(files->store->n_files, sizeof *files->maps);
    if (files->maps == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the files of %s", path);
    for (uint32_t f = 0; f < files->store->n_files; f++)
        SW_TRY(sw_file_map_open(&files->maps[f], files->store->files[f].path, UINT64_MAX, err));
    return SW_OK;
}

sw_status sw_files_open(sw_files *out, const char *path, sw_error *err)
{
    sw_files files = {0};
    sw_status status = open_all(&files, path, err);

    if (status == SW_OK)
        *out = files;
    else
        sw_files_close(&files);
    return status;
}

void sw_files_close(sw_files *files)
{
    for (uint32_t f = 0; files->maps != NULL && f < files->store->n_files; f++)
        sw_file_map_close(&files->maps[f]);
    sw_free(files->maps);
    sw_store_close(files->store);
    *files = (sw_files){0};
}

sw_status sw_files_find(const sw_files *files, const char *name, sw_file_tensor *out, sw_error *err)
{
    const sw_store *store = files->store;
    const sw_store_tensor *tensor = sw_store_find(store, name, strlen(name));

    if (tensor == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "load the checkpoint that was planned", "%.200s: no tensor %s",
                       store->path, name);
    const sw_store_part *part = &store->parts[tensor->first_part];
    const sw_store_file *file = &store->files[part->file];
    const sw_file_map *map = &files->maps[part->file];
    if (map->n_bytes < file->data_begin || map->n_bytes - file->data_begin < part->begin ||
        map->n_bytes - file->data_begin - part->begin < part->n_bytes)
        return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read",
                       file->path);
    const sw_shape *shape = sw_store_dims(tensor);
    *out = (sw_file_tensor){.dtype = tensor->dtype,
                            .dtype_word = tensor->dtype_word,
                            .n_dims = shape->n_dims,
                            .dims = shape->dims,
                            .bytes = map->bytes + file->data_begin + part->begin};
    return SW_OK;
}
