/* The head of every call (checkpoint/options.h). */
#include "checkpoint/options.h"

#include "base/options.h"

sw_status sw_checkpoint_begin(sw_checkpoint_options *out, const sw_checkpoint_options *given,
                              sw_checkpoint_result *result, sw_error *err)
{
    static const sw_options_type type = {"sw_checkpoint_options", "start from SW_CHECKPOINT_OPTIONS_INIT",
                                         SW_END_OF(sw_checkpoint_options, report),
                                         sizeof(sw_checkpoint_options)};

    if (result != NULL)
        *result = (sw_checkpoint_result){0};
    *out = (sw_checkpoint_options)SW_CHECKPOINT_OPTIONS_INIT;
    return sw_options_read(out, given, &type, err);
}
