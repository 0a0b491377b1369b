/* Configs of benchmarks (cli-mpi/bench_config.h). */
#include "cli-mpi/bench_config.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "model/config_edit.h"
#include "model/shards.h"

static void drop_buffer(sw_buffer *buffer)
{
    sw_buffer_clear(buffer);
}

static void drop_path(char **path)
{
    sw_free(*path);
}

static sw_status edit(sw_buffer *out, sw_file_map map, const char *path, sw_dtype dtype, sw_error *err)
{
    sw_config config SW_AUTO(sw_config_clear) = {0};
    sw_config_edit changes = {.dtype = dtype};

    SW_TRY(sw_config_read(&config, map, path, err));
    return sw_config_edited(out, map, path, &config, &changes, err);
}

sw_status sw_bench_config_text(sw_buffer *out, const char *folder, const sw_bench_config *otherwise,
                               sw_dtype dtype, sw_error *err)
{
    sw_file_map map SW_AUTO(sw_file_map_close) = {0};

    if (folder == NULL) {
        map = sw_file_map_of(otherwise->json, strlen(otherwise->json));
        return edit(out, map, otherwise->name, dtype, err);
    }
    char *path SW_AUTO(drop_path) = sw_path_in(folder, "config.json");
    if (path == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "%s: no memory", folder);
    SW_TRY(sw_map_text(&map, path, SW_CONFIG_MAX_BYTES, err));
    return edit(out, map, path, dtype, err);
}

sw_status sw_bench_config_open(sw_model **out, const char *folder, const sw_bench_config *otherwise,
                               sw_dtype dtype, sw_error *err)
{
    sw_buffer text SW_AUTO(drop_buffer) = {0};

    SW_TRY(sw_bench_config_text(&text, folder, otherwise, dtype, err));
    return sw_model_of_config(out, folder == NULL ? otherwise->name : folder,
                              sw_file_map_of(text.bytes, text.length), err);
}
