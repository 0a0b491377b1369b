/* The same files on all ranks (train/same.h): each is one number, a hash. */
#include "train/same.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/status.h"
#include "checkpoint/mapped.h"
#include "comm/comm.h"
#include "model/config.h"
#include "model/shards.h"
#include "plan/plan_write.h"

static void drop_path(char **path)
{
    sw_free(*path);
}

/* Of what stands beside the tensors; a folder may have none, and a file has none. */
static sw_status hash_config(const char *folder, uint64_t *hash, sw_error *err)
{
    char *path SW_AUTO(drop_path) = sw_path_in(folder, "config.json");
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    if (path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", folder);
    if (sw_file_kind_of(path) != SW_FILE_REGULAR)
        return SW_OK;
    SW_TRY(sw_map_text(&map, path, SW_CONFIG_MAX_BYTES, err));
    *hash = sw_hash(map.bytes, map.n_bytes, *hash);
    return SW_OK;
}

static sw_status hash_plan(const sw_plan *plan, uint64_t *hash, sw_error *err)
{
    sw_buffer text = {0};
    sw_status status = sw_plan_write(plan, &text, err);

    if (status == SW_OK)
        *hash = sw_hash(text.bytes, text.length, *hash);
    sw_buffer_clear(&text);
    return status;
}

sw_status sw_same_model(const sw_weights *weights, const sw_plan *plan, sw_comm *comm, sw_error *err)
{
    const char *path = sw_weights_path(weights);
    uint64_t config = sw_model_fingerprint(weights->model);
    uint64_t values = 0;
    uint64_t planned = 0;
    sw_status status = hash_config(path, &config, err);

    if (status == SW_OK)
        status = sw_mapped_sample(weights->files, &values, err);
    if (status == SW_OK)
        status = hash_plan(plan, &planned, err);
    SW_TRY(sw_comm_agree(comm, status, err));
    SW_TRY(sw_comm_same(comm, config, path, err));
    SW_TRY(sw_comm_same(comm, values, path, err));
    return sw_comm_same(comm, planned, "the plan", err);
}

sw_status sw_same_tokens(const sw_tokens *tokens, const char *path, sw_comm *comm, sw_error *err)
{
    return sw_comm_same(comm, sw_hash(tokens->map.bytes, tokens->map.n_bytes, 0), path, err);
}
