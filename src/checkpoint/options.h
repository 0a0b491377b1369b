/* What every call of shardwright/checkpoint.h begins with. */
#ifndef SW_CHECKPOINT_OPTIONS_H
#define SW_CHECKPOINT_OPTIONS_H

#include "shardwright/checkpoint.h"

/* The head of a call: its choices (`given` may be NULL: the defaults), and a result of zeros, if one is
 * wanted. SW_E_ARGUMENT: struct_size was not set. */
sw_status sw_checkpoint_begin(sw_checkpoint_options *out, const sw_checkpoint_options *given,
                              sw_checkpoint_result *result, sw_error *err);

#endif
