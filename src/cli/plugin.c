/* Plugins by the dynamic loader (cli/plugin.h). Loading one runs its code: the user names it on purpose. */
#include "cli/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"

static void close_library(void **library)
{
    if (*library != NULL)
        (void)dlclose(*library);
}

/* A bare name is a file of the working folder; to the loader it would be one of the system's libraries. */
static sw_status open_library(void **out, const char *path, sw_error *err)
{
    sw_file_map head SW_AUTO(sw_file_map_close) = {0};
    uint64_t n_bytes = 0;
    char here[NAME_MAX + 3]; /* a bare name that can be opened is no longer */

    SW_TRY(sw_file_map_head(&head, path, 1, &n_bytes, err));
    (void)snprintf(here, sizeof here, "./%s", path);
    *out = dlopen(strchr(path, '/') == NULL ? here : path, RTLD_NOW | RTLD_LOCAL);
    if (*out != NULL)
        return SW_OK;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): what the C library keeps for this thread
    const char *why = dlerror();
    return SW_FAIL(err, SW_E_FORMAT, "build it as a shared library: cc -shared -fPIC FILE.c -o FILE.so",
                   "%.200s: cannot load: %.250s", path, why == NULL ? "no reason is given" : why);
}

sw_status sw_plugin_register(sw_overrides *overrides, const char *path, sw_error *err)
{
    void *library SW_AUTO(close_library) = NULL;
    sw_error why = {0};

    SW_TRY(open_library(&library, path, err));
    const sw_plugin *plugin = dlsym(library, SW_PLUGIN_SYMBOL);
    if (plugin == NULL)
        return SW_FAIL(err, SW_E_FORMAT, "define it as shardwright/plugin.h shows",
                       "%.200s: does not export '" SW_PLUGIN_SYMBOL "'", path);
    sw_status status = sw_overrides_register(overrides, plugin, &why);
    if (status == SW_OK)
        return SW_OK;
    /* What a caller in C does wrong is here a file that is not as it should be. */
    return SW_FAIL(err, status == SW_E_ARGUMENT ? SW_E_FORMAT : status, why.help, "%.200s: %s", path,
                   why.what);
}
