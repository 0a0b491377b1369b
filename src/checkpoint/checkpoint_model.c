/*
 * The model of a checkpoint: a Hugging Face folder is one, a sharded folder has its names and shapes in the
 * manifest, and the config was carried along.
 */
#include "shardwright/checkpoint.h"

#include "base/status.h"
#include "checkpoint/carry.h"
#include "checkpoint/store.h"
#include "model/model.h"

static void drop_store(sw_store **store)
{
    sw_store_close(*store);
}

static sw_status list_parameters(sw_tensor_list *out, const sw_store *store, sw_error *err)
{
    SW_TRY(sw_tensor_list_init(out, 0, err));
    for (uint32_t i = 0; i < store->n_tensors; i++) {
        const sw_store_tensor *t = &store->tensors[i];
        const sw_shape *shape = NULL;
        if (t->state_of != UINT32_MAX)
            continue;
        SW_TRY(sw_tensor_list_shape(out, t->shape->dims, t->shape->n_dims, &shape, err));
        SW_TRY(sw_tensor_list_add(out, t->name, t->name_length, t->dtype, shape, UINT32_MAX, 0, err));
    }
    return SW_OK;
}

sw_status sw_checkpoint_model(sw_model **out, const char *path, sw_error *err)
{
    sw_store *store SW_AUTO(drop_store) = NULL;
    sw_tensor_list list SW_AUTO(sw_tensor_list_clear) = {0};
    sw_store_kind kind = SW_STORE_HF;

    SW_NEED(out, err);
    *out = NULL;
    SW_NEED(path, err);
    SW_TRY(sw_store_kind_of(path, &kind, err));
    if (kind == SW_STORE_HF)
        return sw_model_open(out, path, err);
    SW_TRY(sw_store_open(&store, path, NULL, err));
    SW_TRY(sw_carry_check(store, err)); /* the config is one of them */
    SW_TRY(list_parameters(&list, store, err));
    return sw_model_of_list(out, path, store->folder, &list, err);
}
