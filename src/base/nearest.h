/* "did you mean": the nearest of a list of words by edit distance (insert, delete, replace, swap neighbours).
 */
#ifndef SW_BASE_NEAREST_H
#define SW_BASE_NEAREST_H

#include <stddef.h>

/* The nearest word within a third of the longer length (at least 1, at most 3 edits), or NULL. */
const char *sw_nearest(const char *word, const char *const *words, size_t n_words);

#endif
