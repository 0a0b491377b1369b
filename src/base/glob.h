/* Shell-like patterns on FQNs: `*` any run (dots too), `?` one character, `[abc]`, `[a-z]`, `[!x]`. */
#ifndef SW_BASE_GLOB_H
#define SW_BASE_GLOB_H

#include <stdbool.h>

bool sw_glob_is_pattern(const char *text);                 /* has one of * ? [ */
bool sw_glob_match(const char *pattern, const char *text); /* linear-time backtracking over the last `*` */

#endif
