/* Choices of the calls (checkpoint/options.h): as many bytes are taken as both sides know. */
#include "checkpoint/options.h"

#include <string.h>

#include "base/status.h"

sw_status sw_checkpoint_options_read(sw_checkpoint_options *out, const sw_checkpoint_options *given,
                                     sw_error *err)
{
    size_t known = sizeof *out;

    *out = (sw_checkpoint_options)SW_CHECKPOINT_OPTIONS_INIT;
    if (given == NULL)
        return SW_OK;
    if (given->struct_size == 0)
        return SW_FAIL(err, SW_E_ARGUMENT, "start from SW_CHECKPOINT_OPTIONS_INIT",
                       "sw_checkpoint_options: struct_size is 0");
    memcpy(out, given, given->struct_size < known ? given->struct_size : known);
    return SW_OK;
}
