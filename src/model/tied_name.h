/*
 * The name of an embedding or a head that a checkpoint does not store because it is tied to the other one.
 */
#ifndef SW_MODEL_TIED_NAME_H
#define SW_MODEL_TIED_NAME_H

#include <stddef.h>

#include "base/arena.h"
#include "family/family.h"

/*
 * The weight of `missing`, SW_ROLE_EMBED or SW_ROLE_LM_HEAD, under the family's name and the prefix that the
 * other one has; `present` is the module of that, `length` bytes. The family may be NULL. NULL: no memory.
 */
const char *sw_tied_name(sw_arena *arena, const sw_family *family, sw_role missing, const char *present,
                         size_t length);

#endif
