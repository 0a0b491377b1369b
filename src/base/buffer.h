/* A growing run of bytes: output is built here and written at once. An error sticks: check `failed` at the
 * end. */
#ifndef SW_BASE_BUFFER_H
#define SW_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sw_buffer {
    char *bytes; /* not ended by NUL unless sw_buffer_text() was called */
    size_t length;
    size_t capacity;
    bool failed; /* an allocation failed; what was appended since is lost */
} sw_buffer;     /* all zero is an empty buffer */

void sw_buffer_clear(sw_buffer *buffer); /* frees */

/* Room for `length` bytes behind what is there, to be filled and then added to `length`; NULL when failed. */
char *sw_buffer_room(sw_buffer *buffer, size_t length);
void sw_buffer_append(sw_buffer *buffer, const void *bytes, size_t length);
void sw_buffer_puts(sw_buffer *buffer, const char *text);
void sw_buffer_putc(sw_buffer *buffer, char c);
void sw_buffer_u64(sw_buffer *buffer, uint64_t value); /* decimal, without printf */
void sw_buffer_printf(sw_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *sw_buffer_text(sw_buffer *buffer); /* NUL-ended view, "" when empty, NULL when failed */

#endif
