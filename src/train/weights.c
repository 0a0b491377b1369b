/* Checkpoints as named tensors (train/weights.h). */
#include "train/weights.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "checkpoint/store.h"
#include "kernel/read_floats.h"
#include "shardwright/checkpoint.h"

/* ---- elements ---- */

void sw_weight_read(const sw_weight *weight, const sw_kernel *kernel, sw_dtype dtype, void *to)
{
    sw_kernel_read_floats(kernel, weight->dtype, weight->bytes, dtype, to, weight->n_elems);
}

bool sw_weight_is_readable(sw_dtype from, sw_dtype to)
{
    return sw_can_read_floats(from, to);
}

/* ---- tensors ---- */

static sw_status changed(const char *path, sw_error *err)
{
    return SW_FAIL(err, SW_E_IO, "nothing may write to it meanwhile", "%s: changed while it was read", path);
}

sw_status sw_weights_find(const sw_weights *weights, const char *name, sw_weight *out, bool *is_there,
                          sw_error *err)
{
    const sw_store_tensor *tensor = sw_store_find(weights->store, name, strlen(name));

    *is_there = tensor != NULL;
    if (tensor == NULL)
        return SW_OK;
    const sw_store_part *part = &weights->store->parts[tensor->first_part];
    const sw_store_file *file = &weights->store->files[part->file];
    sw_file_map map = weights->maps[part->file];
    if (map.n_bytes != file->n_bytes || part->begin > map.n_bytes - file->data_begin ||
        part->n_bytes > map.n_bytes - file->data_begin - part->begin)
        return changed(file->path, err);
    *out = (sw_weight){tensor->name, tensor->dtype, tensor->dtype_word, tensor->shape->elems,
                       map.bytes + file->data_begin + part->begin};
    return SW_OK;
}

const char *sw_weights_path(const sw_weights *weights)
{
    return weights->store->path;
}

const char *sw_weights_state(const sw_weights *weights, size_t *length)
{
    *length = weights->store->state_length;
    return weights->store->state_json;
}

/* ---- opening ---- */

static sw_status map_files(sw_weights *weights, sw_error *err)
{
    const sw_store *store = weights->store;

    weights->maps = sw_alloc_zero((size_t)store->n_files + 1, sizeof *weights->maps);
    if (weights->maps == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", store->path);
    for (uint32_t f = 0; f < store->n_files; f++)
        SW_TRY(sw_file_map_open(&weights->maps[f], store->files[f].path, UINT64_MAX, err));
    return SW_OK;
}

static sw_status open_all(sw_weights *weights, const char *path, sw_error *err)
{
    sw_store_kind kind = SW_STORE_HF;

    SW_TRY(sw_store_kind_of(path, &kind, err));
    if (kind != SW_STORE_HF)
        return SW_FAIL(err, SW_E_FORMAT, "put it together with `shardwright merge`",
                       "%s: is a sharded folder; one rank runs a Hugging Face folder", path);
    SW_TRY(sw_model_open(&weights->model, path, err));
    SW_TRY(sw_store_open(&weights->store, path, NULL, err));
    return map_files(weights, err);
}

static sw_status open_parts(sw_weights *weights, const char *path, sw_error *err)
{
    SW_TRY(sw_checkpoint_model(&weights->model, path, err));
    return sw_store_open(&weights->store, path, NULL, err);
}

static sw_status finish(sw_weights *out, sw_weights *weights, sw_status status)
{
    if (status == SW_OK)
        *out = *weights;
    else
        sw_weights_close(weights);
    return status;
}

sw_status sw_weights_open(sw_weights *out, const char *path, sw_error *err)
{
    sw_weights weights = {0};

    return finish(out, &weights, open_all(&weights, path, err));
}

sw_status sw_weights_open_parts(sw_weights *out, const char *path, sw_error *err)
{
    sw_weights weights = {0};

    return finish(out, &weights, open_parts(&weights, path, err));
}

void sw_weights_unmap(sw_weights *weights)
{
    for (uint32_t f = 0; weights->maps != NULL && f < weights->store->n_files; f++)
        sw_file_map_close(&weights->maps[f]);
    sw_free(weights->maps);
    weights->maps = NULL;
}

void sw_weights_close(sw_weights *weights)
{
    sw_weights_unmap(weights);
    sw_store_close(weights->store);
    sw_model_close(weights->model);
    *weights = (sw_weights){0};
}
