/*
 * May a folder that is there be exchanged for a new one, and removed? Only when nothing is lost that a
 * command did not write or carry along: nobody's home goes by a slip of --replace.
 */
#ifndef SW_CHECKPOINT_REPLACE_H
#define SW_CHECKPOINT_REPLACE_H

#include "shardwright/error.h"

/*
 * SW_OK for an empty folder, and for a checkpoint of either kind with nothing in it but what belongs to it.
 * `source`: what is read meanwhile; NULL: nothing. It may be `out` itself, but not stand inside.
 * SW_E_ARGUMENT says what is in the way, and how many others.
 */
sw_status sw_replace_check(const char *out, const char *source, sw_error *err);

#endif
