/* Growing bytes, doubling. After a failed allocation nothing more is appended, so a caller checks once. */
#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 256 };

void sw_buffer_clear(sw_buffer *buffer)
{
    sw_free(buffer->bytes);
    *buffer = (sw_buffer){0};
}

/* Room for `more` bytes behind what is there. */
static bool reserve(sw_buffer *buffer, size_t more)
{
    if (buffer->failed)
        return false;
    if (more <= buffer->capacity - buffer->length)
        return true;

    size_t needed = 0;
    size_t capacity = buffer->capacity == 0 ? FIRST_CAPACITY : buffer->capacity;
    bool fits = !__builtin_add_overflow(buffer->length, more, &needed) && needed <= SIZE_MAX / 2;
    while (fits && capacity < needed)
        capacity *= 2;
    char *bytes = fits ? sw_realloc(buffer->bytes, capacity) : NULL;
    if (bytes == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

char *sw_buffer_room(sw_buffer *buffer, size_t length)
{
    return reserve(buffer, length) ? buffer->bytes + buffer->length : NULL;
}

void sw_buffer_append(sw_buffer *buffer, const void *bytes, size_t length)
{
    if (length == 0 || !reserve(buffer, length))
        return;
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}

void sw_buffer_puts(sw_buffer *buffer, const char *text)
{
    sw_buffer_append(buffer, text, strlen(text));
}

void sw_buffer_putc(sw_buffer *buffer, char c)
{
    if (reserve(buffer, 1))
        buffer->bytes[buffer->length++] = c;
}

void sw_buffer_u64(sw_buffer *buffer, uint64_t value)
{
    enum { MOST_DIGITS = 20 }; /* of UINT64_MAX */
    char *to = sw_buffer_room(buffer, MOST_DIGITS);
    size_t n_digits = 1;

    if (to == NULL)
        return;
    for (uint64_t power = 10; n_digits < MOST_DIGITS && value >= power; power *= 10)
        n_digits++;
    for (size_t i = n_digits; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    buffer->length += n_digits;
}

void sw_buffer_printf(sw_buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if (!reserve(buffer, (size_t)length + 1)) /* vsnprintf ends with a NUL */
        return;
    va_start(args, format);
    (void)vsnprintf(buffer->bytes + buffer->length, (size_t)length + 1, format, args);
    va_end(args);
    buffer->length += (size_t)length;
}

const char *sw_buffer_text(sw_buffer *buffer)
{
    if (!reserve(buffer, 1))
        return NULL;
    buffer->bytes[buffer->length] = '\0';
    return buffer->bytes;
}
