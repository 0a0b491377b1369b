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

bool sw_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL;  /* pattern behind the last `*` */
    const char *retry = NULL; /* text from which that `*` would take one more */
    const char *next = NULL;

    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern != '\0' && match_one(pattern, *text, &next)) {
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
