/* Choices of the calls, read from a struct of a caller that may be older or newer than the library. */
#ifndef SW_CHECKPOINT_OPTIONS_H
#define SW_CHECKPOINT_OPTIONS_H

#include "shardwright/checkpoint.h"

/* `given` may be NULL: defaults. SW_E_ARGUMENT: struct_size was not set. */
sw_status sw_checkpoint_options_read(sw_checkpoint_options *out, const sw_checkpoint_options *given,
                                     sw_error *err);

#endif
