/* Handlers of special parameters, by name. */
#ifndef SW_APPLY_SPECIAL_H
#define SW_APPLY_SPECIAL_H

#include "apply/phases.h"

bool sw_special_is_known(const char *name);

#endif
