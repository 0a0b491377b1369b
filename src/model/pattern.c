/* Patterns of names: one pass over the segments. A number that is too long for a count is a name like any other. */
#include "model/pattern.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

uint32_t sw_make_pattern(const char *name, char *out, int32_t counts[2])
{
    uint32_t n = 0;
    int found = 0;
    const char *at = name;

    counts[0] = -1;
    counts[1] = -1;
    for (;;) {
        const char *end = at;
        int64_t value = 0;
        bool digits = is_digit(*at);
        while (*end != '.' && *end != '\0') {
            digits = digits && is_digit(*end) && value < 100000000;
            value = digits ? value * 10 + (*end - '0') : value;
            end++;
        }
        if (digits) {
            out[n++] = '#';
            if (found < 2)
                counts[found++] = (int32_t)value;
        } else {
            memcpy(out + n, at, (size_t)(end - at));
            n += (uint32_t)(end - at);
        }
        if (*end == '\0')
            return n;
        out[n++] = '.';
        at = end + 1;
    }
}
