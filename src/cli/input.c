/* What several commands read from their command line; failures name the option they come from. */
#include "cli/input.h"

#include <stdint.h>

#include "base/status.h"
#include "cli/plugin.h"

sw_status sw_input_mesh(sw_mesh **out, const sw_arguments *arguments, uint32_t mesh_row, uint32_t ep_row,
                        sw_error *err)
{
    const char *axes = NULL;
    uint32_t ep = 0;

    SW_TRY(sw_arguments_require(arguments, mesh_row, &axes, err));
    SW_TRY(sw_arguments_u32(arguments, ep_row, 1, UINT32_MAX, &ep, err));
    sw_status status = sw_mesh_create(out, axes, ep, err);
    if (status != SW_OK)
        sw_error_context(err, "--%s", arguments->options[mesh_row].name);
    return status;
}

sw_status sw_input_overrides(sw_overrides **out, const sw_arguments *arguments, uint32_t row,
                             uint32_t plugin_row, sw_error *err)
{
    const char *path = arguments->values[row];
    const char *plugin = arguments->values[plugin_row];

    if (path == NULL && plugin == NULL)
        return SW_OK;
    SW_TRY(sw_overrides_create(out, err));
    if (plugin != NULL)
        SW_TRY(sw_plugin_register(*out, plugin, err));
    return path == NULL ? SW_OK : sw_overrides_add_file(*out, path, err);
}
