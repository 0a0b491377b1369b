/*
 * A name's pattern: its counts replaced by '#'. A count is a whole segment of at most six digits without a
 * leading zero: so a pattern and its counts give back the name, and an array indexed by a count stays small.
 */
#ifndef SW_MODEL_PATTERN_H
#define SW_MODEL_PATTERN_H

#include <stdint.h>

enum { SW_COUNT_LIMIT = 1000000 };

/*
 * Write the pattern of `name` into `out` (room for the name's length; no final NUL) and return its length. A
 * '#' of the name itself becomes a control character, which no name has: in a pattern '#' is always a count.
 *
 * counts  gets the first two counts, -1 where there is none
 */
uint32_t sw_make_pattern(const char *name, char *out, int32_t counts[2]);

/* Bytes of a pattern up to its n-th '#' (n from 1), that included; 0 when it has fewer. */
uint32_t sw_pattern_before_count(const char *pattern, uint32_t length, int n);

/* Order of names or patterns as people count: "h.2" before "h.10". Ended by NUL; 0 only for equal bytes. */
int sw_compare_names(const char *a, const char *b);

#endif
