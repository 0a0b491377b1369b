/* Scanning of text that comes from files: UTF-8 as RFC 3629 has it, and the runs that JSON takes as they are.
 */
#ifndef SW_BASE_TEXT_H
#define SW_BASE_TEXT_H

#include <stddef.h>

/*
 * How many bytes from the start are whole, valid UTF-8 characters; `length` when all are. Overlong forms,
 * surrogates and what lies above U+10FFFF are not valid.
 */
size_t sw_utf8_valid_prefix(const void *bytes, size_t length);

/* Bytes of the byte-order mark that some editors put before UTF-8: 3, or 0 when there is none. */
size_t sw_utf8_mark(const void *bytes, size_t length);

/* How many bytes from the start are ASCII without quote, backslash and characters below the blank. */
size_t sw_text_plain_prefix(const void *bytes, size_t length);

/*
 * How many bytes from the start hold no control character; `length` when none is there. Those of ASCII and of
 * Unicode (U+0080 to U+009F), and what breaks lines or turns the direction of text (U+200E, U+200F, U+2028 to
 * U+202E, U+2066 to U+2069): a terminal obeys them, or a reader is deceived by them.
 */
size_t sw_text_printable_prefix(const void *bytes, size_t length);

/* Replace every byte of a control character by a question mark. */
void sw_text_clean(char *text, size_t length);

#endif
