/*
 * Patterns on names. Only the last `*` is ever tried again: an earlier one never has to take more, so the
 * time is bounded by the product of the lengths whatever the pattern.
 */
#include "base/glob.h"

#include <stddef.h>
#include <string.h>

bool sw_glob_is_pattern(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}

/* The ']' of the set that opens at `set`, or NULL: then '[' is a plain character. */
static const char *set_end(const char *set)
{
    const char *at = set + 1;

    at += *at == '!';
    if (*at == ']') /* the first stands for itself */
        at++;
    return strchr(at, ']');
}

static bool is_in_set(const char *set, const char *end, char c)
{
    const char *at = set + 1;
    bool is_negated = *at == '!';
    bool is_found = false;

    at += is_negated;
    while (at < end) {
        unsigned char low = (unsigned char)*at++;
        unsigned char high = low;
        if (at + 1 < end && *at == '-') {
            high = (unsigned char)at[1];
            at += 2;
        }
        is_found = is_found || ((unsigned char)c >= low && (unsigned char)c <= high);
    }
    return is_found != is_negated;
}

/* Match one character; *next is the pattern behind what matched it. `*` is none of its business. */
static bool match_one(const char *pattern, char c, const char **next)
{
    const char *end = *pattern == '[' ? set_end(pattern) : NULL;

    *next = (end == NULL ? pattern : end) + 1;
    if (end != NULL)
        return is_in_set(pattern, end, c);
    return *pattern == '?' || *pattern == c;
}

sw_glob sw_glob_of(const char *pattern)
{
    sw_glob glob = {.pattern = pattern, .length = strlen(pattern), .head = strcspn(pattern, "*?[")};

    while (glob.tail < glob.length - glob.head &&
           strchr("*?[]", pattern[glob.length - glob.tail - 1]) == NULL)
        glob.tail++;
    if (glob.length > 0)
        glob.last = pattern[glob.length - 1];
    return glob;
}

/* Most names are told apart here, and most of those by their last character. */
static bool ends_alike(const sw_glob *glob, const char *text, size_t length)
{
    if (length < glob->head + glob->tail || (glob->tail > 0 && text[length - 1] != glob->last))
        return false;
    return memcmp(text + length - glob->tail, glob->pattern + glob->length - glob->tail, glob->tail) == 0 &&
           memcmp(text, glob->pattern, glob->head) == 0;
}

bool sw_glob_match_in(const sw_glob *glob, const char *text, size_t length, uint64_t *steps)
{
    const char *pattern = glob->pattern + glob->head;
    const char *end = text + length;
    const char *star = NULL;  /* pattern behind the last `*` */
    const char *retry = NULL; /* text from which that `*` would take one more */
    const char *next = NULL;

    ++*steps;
    if (!ends_alike(glob, text, length))
        return false;
    text += glob->head;
    while (text < end) {
        ++*steps;
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern != '\0' && match_one(pattern, *text, &next)) {
            *steps += (uint64_t)(next - pattern) - 1; /* a set costs its length */
            pattern = next;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool sw_glob_match(const char *pattern, const char *text)
{
    sw_glob glob = sw_glob_of(pattern);
    uint64_t steps = 0;

    return sw_glob_match_in(&glob, text, strlen(text), &steps);
}
