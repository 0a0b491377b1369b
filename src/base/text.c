/* Both scans take eight ASCII bytes at a time; other characters go by the lead bytes of RFC 3629. */
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character that starts here, 0 when it is not valid or cut off. */
static size_t character_bytes(const uint8_t *at, size_t left)
{
    uint8_t lead = at[0];
    uint8_t low = 0x80; /* range of the second byte: where overlong forms and surrogates are cut off */
    uint8_t high = 0xbf;
    size_t n_bytes = 0;

    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf) {
        n_bytes = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        n_bytes = 3;
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        n_bytes = 4;
        low = lead == 0xf0 ? 0x90 : low;
        high = lead == 0xf4 ? 0x8f : high;
    }
    if (n_bytes == 0 || n_bytes > left || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < n_bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return n_bytes;
}

size_t sw_utf8_valid_prefix(const void *bytes, size_t length)
{
    const uint8_t *start = bytes;
    size_t i = 0;

    while (i < length) {
        uint64_t word = 0;
        if (length - i >= sizeof word) {
            memcpy(&word, start + i, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof word;
                continue;
            }
        }
        size_t n_bytes = character_bytes(start + i, length - i);
        if (n_bytes == 0)
            break;
        i += n_bytes;
    }
    return i;
}

/* Nonzero when one of eight bytes ends a plain run. */
static uint64_t stops(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t quote = word ^ (ones * '"');
    uint64_t slash = word ^ (ones * '\\');
    /* The usual "has a byte below n" tests; a borrow can only mislead behind a byte that stops the run. */
    return ((word - ones * 0x20) | (quote - ones) | (slash - ones) | word) & tops;
}

size_t sw_utf8_mark(const void *bytes, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = sizeof mark - 1;
    return length >= n && memcmp(bytes, mark, n) == 0 ? n : 0;
}

size_t sw_text_plain_prefix(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    size_t i = 0;

    while (length - i >= sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at + i, sizeof word);
        if (stops(word) != 0)
            break;
        i += sizeof word;
    }
    while (i < length && at[i] >= 0x20 && at[i] < 0x80 && at[i] != '"' && at[i] != '\\')
        i++;
    return i;
}

/* Control characters above ASCII: their first bytes, and the range of the last one. */
typedef struct control_range {
    const char *lead;
    unsigned char first;
    unsigned char last;
} control_range;

static const control_range control_ranges[] = {
    {"\xc2",     0x80, 0x9f},
    {"\xe2\x80", 0x8e, 0x8f},
    {"\xe2\x80", 0xa8, 0xae},
    {"\xe2\x81", 0xa6, 0xa9},
};

/* Bytes of the control character that stands here; 0: none does. */
static size_t control_at(const unsigned char *at, size_t left)
{
    if (*at < 0x20 || *at == 0x7f)
        return 1;
    for (size_t i = 0; *at >= 0x80 && i < sizeof control_ranges / sizeof control_ranges[0]; i++) {
        const control_range *range = &control_ranges[i];
        size_t n = strlen(range->lead);
        if (left > n && memcmp(at, range->lead, n) == 0 && at[n] >= range->first && at[n] <= range->last)
            return n + 1;
    }
    return 0;
}

size_t sw_text_printable_prefix(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t i = 0;

    while (i < length && control_at(at + i, length - i) == 0)
        i++;
    return i;
}

void sw_text_clean(char *text, size_t length)
{
    for (size_t i = sw_text_printable_prefix(text, length); i < length;
         i += sw_text_printable_prefix(text + i, length - i))
        memset(text + i, '?', control_at((const unsigned char *)text + i, length - i));
}
