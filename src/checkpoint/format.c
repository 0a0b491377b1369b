/* Coordinates, file names and numbers as a sharded folder writes them; reading takes exactly what is written.
 */
#include "checkpoint/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

void sw_coord_text(sw_coord coord, char text[SW_COORD_TEXT_BYTES])
{
    size_t n = (size_t)snprintf(text, SW_COORD_TEXT_BYTES, "pp=%" PRId32, coord.pp);

    if (coord.tp >= 0)
        n += (size_t)snprintf(text + n, SW_COORD_TEXT_BYTES - n, ",tp=%" PRId32, coord.tp);
    if (coord.ep >= 0)
        (void)snprintf(text + n, SW_COORD_TEXT_BYTES - n, ",ep=%" PRId32, coord.ep);
}

/* A number without leading zeros that fits. */
static bool take_number(const char **at, const char *end, int32_t *out)
{
    const char *first = *at;
    int64_t value = 0;

    for (; *at < end && **at >= '0' && **at <= '9' && value <= INT32_MAX; ++*at)
        value = value * 10 + (**at - '0');
    *out = (int32_t)value;
    return *at > first && value <= INT32_MAX && (*first != '0' || *at == first + 1);
}

/* Numbers behind the words that are there, in the order of pp, tp, ep. */
static bool take_coord(const char **at, const char *end, const char *const words[3], sw_coord *out)
{
    int32_t *const values[] = {&out->pp, &out->tp, &out->ep};

    *out = (sw_coord){-1, -1, -1};
    for (size_t i = 0; i < SW_COUNT(values); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - *at) < n || memcmp(*at, words[i], n) != 0)
            continue;
        *at += n;
        if (!take_number(at, end, values[i]))
            return false;
    }
    return out->pp >= 0 && (out->tp >= 0 || out->ep >= 0);
}

bool sw_coord_parse(sw_coord *out, const char *text, size_t length)
{
    static const char *const words[] = {"pp=", ",tp=", ",ep="};
    const char *at = text;

    return take_coord(&at, text + length, words, out) && at == text + length;
}

void sw_coord_file_name(sw_coord coord, char text[SW_COORD_TEXT_BYTES])
{
    size_t n = (size_t)snprintf(text, SW_COORD_TEXT_BYTES, "%s-pp%" PRId32,
                                coord.tp >= 0 ? "dense" : "expert", coord.pp);

    if (coord.tp >= 0)
        n += (size_t)snprintf(text + n, SW_COORD_TEXT_BYTES - n, "-tp%" PRId32, coord.tp);
    if (coord.ep >= 0)
        n += (size_t)snprintf(text + n, SW_COORD_TEXT_BYTES - n, "-ep%" PRId32, coord.ep);
    (void)snprintf(text + n, SW_COORD_TEXT_BYTES - n, ".safetensors");
}

bool sw_coord_of_file_name(sw_coord *out, const char *name)
{
    static const char *const words[] = {"-pp", "-tp", "-ep"};
    const char *at = strchr(name, '-');
    char text[SW_COORD_TEXT_BYTES];

    if (at == NULL || !take_coord(&at, name + strlen(name), words, out))
        return false;
    sw_coord_file_name(*out, text);
    return strcmp(text, name) == 0;
}

void sw_hex_text(uint64_t value, char text[SW_HEX_BYTES])
{
    (void)snprintf(text, SW_HEX_BYTES, "%016" PRIx64, value);
}

bool sw_hex_parse(uint64_t *out, const char *text, size_t length)
{
    uint64_t value = 0;

    if (length != SW_HEX_BYTES - 1)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *out = value;
    return true;
}
