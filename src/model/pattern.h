/* A name's pattern: its all-digit segments replaced by '#'. */
#ifndef SW_MODEL_PATTERN_H
#define SW_MODEL_PATTERN_H

#include <stdint.h>

/*
 * Write the pattern of `name` into `out` (room for the name's length) and return its length.
 *
 * counts  gets the first two counts, -1 where there is none
 */
uint32_t sw_make_pattern(const char *name, char *out, int32_t counts[2]);

#endif
