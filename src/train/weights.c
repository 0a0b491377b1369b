/* Checkpoints as named tensors (train/weights.h). */
#include "train/weights.h"

#include <string.h>

#include "base/status.h"
#include "checkpoint/mapped.h"
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

sw_status sw_weights_find(const sw_weights *weights, const char *name, sw_weight *out, bool *is_there,
                          sw_error *err)
{
    const sw_store_tensor *tensor = sw_store_find(weights->store, name, strlen(name));

    *is_there = tensor != NULL;
    if (tensor == NULL)
        return SW_OK;
    *out = (sw_weight){.name = tensor->name,
                       .dtype = tensor->dtype,
                       .dtype_word = tensor->dtype_word,
                       .n_elems = tensor->shape->elems};
    return sw_mapped_lend(weights->files, tensor, &out->bytes, err);
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

static sw_status open_files(sw_weights *weights, const char *path, sw_error *err)
{
    SW_TRY(sw_store_open(&weights->store, path, NULL, err));
    return sw_mapped_create(&weights->files, weights->store, err);
}

static sw_status open_all(sw_weights *weights, const char *path, sw_error *err)
{
    SW_TRY(sw_checkpoint_model(&weights->model, path, err));
    return open_files(weights, path, err);
}

static sw_status open_described(sw_weights *weights, const char *path, sw_error *err)
{
    sw_store_kind kind = SW_STORE_HF;

    SW_TRY(sw_store_kind_of(path, &kind, err));
    SW_TRY(sw_checkpoint_model(&weights->model, path, err));
    if (kind == SW_STORE_HF && weights->model->list.n_files == 0)
        return SW_OK;
    return open_files(weights, path, err);
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

sw_status sw_weights_open_described(sw_weights *out, const char *path, sw_error *err)
{
    sw_weights weights = {0};

    return finish(out, &weights, open_described(&weights, path, err));
}

void sw_weights_unmap(sw_weights *weights)
{
    sw_mapped_destroy(weights->files);
    weights->files = NULL;
}

void sw_weights_close(sw_weights *weights)
{
    sw_weights_unmap(weights);
    sw_store_close(weights->store);
    sw_model_close(weights->model);
    *weights = (sw_weights){0};
}
