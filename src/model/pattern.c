/*
 * Patterns of names: one pass over the bytes. Each segment is copied as it is read and taken back when it
 * turns out to be a count.
 */
#include "model/pattern.h"

#include <stdbool.h>
#include <string.h>

/* Stands for a '#' that the name itself has. */
static const char LITERAL_SIGN = '\x01';

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

uint32_t sw_make_pattern(const char *name, char *out, int32_t counts[2])
{
    const char *at = name;
    char *to = out;
    int n_found = 0;

    counts[0] = -1;
    counts[1] = -1;
    for (;;) {
        char *segment = to;
        int32_t value = 0;
        bool is_count = is_digit(*at) && (*at != '0' || !is_digit(at[1]));
        for (; *at != '.' && *at != '\0'; at++) {
            is_count = is_count && is_digit(*at) && value < SW_COUNT_LIMIT / 10;
            value = is_count ? value * 10 + (*at - '0') : value;
            *to = *at;
            if (*to == '#')
                *to = LITERAL_SIGN;
            to++;
        }
        if (is_count) {
            to = segment;
            *to++ = '#';
            if (n_found < 2)
                counts[n_found++] = value;
        }
        if (*at == '\0')
            return (uint32_t)(to - out);
        *to++ = *at++;
    }
}

uint32_t sw_pattern_before_count(const char *pattern, uint32_t length, int n)
{
    const char *end = pattern + length;

    for (const char *at = pattern; at < end && n > 0; at++) {
        at = memchr(at, '#', (size_t)(end - at));
        if (at == NULL)
            return 0;
        if (--n == 0)
            return (uint32_t)(at - pattern) + 1;
    }
    return 0;
}

int sw_compare_names(const char *a, const char *b)
{
    const char *number = a; /* where the digits that both have in common began */
    size_t i = 0;

    for (; a[i] != '\0' && a[i] == b[i]; i++) {
        if (!is_digit(a[i]))
            number = a + i + 1;
    }
    if (is_digit(a[i]) || is_digit(b[i])) {
        size_t from = (size_t)(number - a);
        size_t digits_a = strspn(a + from, "0123456789");
        size_t digits_b = strspn(b + from, "0123456789");
        if (digits_a > 0 && digits_b > 0 && digits_a != digits_b)
            return digits_a < digits_b ? -1 : 1;
    }
    unsigned char left = (unsigned char)a[i];
    unsigned char right = (unsigned char)b[i];
    return left == right ? 0 : left < right ? -1 : 1;
}
