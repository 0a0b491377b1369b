/* Shell-like patterns on FQNs: `*` any run (dots too), `?` one character, `[abc]`, `[a-z]`, `[!x]`. */
#ifndef SW_BASE_GLOB_H
#define SW_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool sw_glob_is_pattern(const char *text); /* has one of * ? [ */
bool sw_glob_match(const char *pattern, const char *text);

/* A pattern made ready for many names. Borrows the text. */
typedef struct sw_glob {
    const char *pattern;
    size_t length;
    size_t head; /* bytes before the first wildcard */
    size_t tail; /* bytes behind the last one */
    char last;   /* the last of them, when there is one */
} sw_glob;

sw_glob sw_glob_of(const char *pattern);

/*
 * The same for text of `length` bytes without a NUL at its end. *steps is counted up by one and by the
 * characters that were compared, so that a caller with many patterns and names can bound its work.
 */
bool sw_glob_match_in(const sw_glob *glob, const char *text, size_t length, uint64_t *steps);

#endif
