/* Small files of a sharded folder (checkpoint/verify.h): a finding each, where merge ends with the first. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/status.h"
#include "checkpoint/opening.h"
#include "checkpoint/rank_file.h"
#include "checkpoint/verify.h"

static const char put_back[] = "put the file there that was written, or write the checkpoint again";

static void compare(const sw_verifying *v, const sw_small_file *said, sw_file_map found)
{
    if (found.n_bytes != said->n_bytes)
        sw_verify_fault(v, "file_size", said->name, put_back, "has %zu bytes, the manifest says %" PRIu64,
                        found.n_bytes, said->n_bytes);
    else if (sw_hash(found.bytes, found.n_bytes, 0) != said->hash)
        sw_verify_fault(v, "checksum", said->name, put_back, "was edited or damaged after it was written");
}

static sw_status look_at(const sw_verifying *v, const sw_small_file *said)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};
    sw_error why = {0};
    sw_opening o = {.store = v->store, .err = &why};
    const char *path = sw_opening_path(&o, said->name);

    if (path == NULL)
        return SW_FAIL(v->err, SW_E_NO_MEMORY, "", "%s: no memory", v->path);
    sw_status status = sw_expect_own_file(path, &why);
    bool is_there = status == SW_OK;
    if (is_there)
        status = sw_file_map_open(&map, path, UINT64_MAX, &why);
    if (status == SW_OK) {
        compare(v, said, map);
    } else {
        sw_verify_fault(v,
                        status != SW_E_IO ? "file_damaged"
                        : is_there        ? "file_unreadable"
                                          : "file_missing",
                        said->name, why.help, "%s", sw_verify_without_folder(v, why.what));
    }
    return SW_OK;
}

sw_status sw_verify_small_files(const sw_verifying *v)
{
    for (uint32_t i = 0; i < v->store->n_carried; i++)
        SW_TRY(look_at(v, &v->store->carried[i]));
    return SW_OK;
}
