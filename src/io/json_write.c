/*
 * The streaming writer of io/json_write.h. Everything goes to the buffer by memcpy: strings are cut only
 * where a byte must be escaped. What is written is always valid UTF-8; other bytes become U+FFFD.
 */
#include "io/json_write.h"

#include <string.h>

#include "base/status.h"
#include "base/text.h"

enum { PIECE_BYTES = 1 << 16 };

void sw_json_write_init(sw_json_writer *writer, sw_buffer *out, bool is_compact)
{
    *writer = (sw_json_writer){.out = out, .is_compact = is_compact};
}

void sw_json_write_to(sw_json_writer *writer, sw_buffer *room, bool is_compact, const sw_sink *sink,
                      sw_error *err)
{
    *writer = (sw_json_writer){.out = room, .is_compact = is_compact, .sink = sink, .err = err};
}

static void give(sw_json_writer *writer)
{
    if (writer->status == SW_OK && writer->out->length > 0 && !writer->out->failed)
        writer->status =
            writer->sink->take(writer->sink->user, writer->out->bytes, writer->out->length, writer->err);
    writer->out->length = 0;
}

static void give_if_large(sw_json_writer *writer)
{
    if (writer->sink != NULL && writer->out->length >= PIECE_BYTES)
        give(writer);
}

sw_status sw_json_write_end(sw_json_writer *writer)
{
    if (writer->out->failed)
        return SW_FAIL(writer->err, SW_E_NO_MEMORY, "", "no memory for JSON text");
    if (writer->sink != NULL)
        give(writer);
    return writer->status;
}

static bool is_inline(const sw_json_writer *writer)
{
    return writer->inline_from != 0 && writer->depth >= writer->inline_from;
}

static void new_line(sw_json_writer *writer)
{
    static const char blanks[] = "\n                                ";
    const uint32_t most = (uint32_t)sizeof blanks - 2;
    uint32_t left = writer->depth;
    uint32_t n_blanks = left < most ? left : most;

    sw_buffer_append(writer->out, blanks, 1 + (size_t)n_blanks);
    for (left -= n_blanks; left > 0; left -= n_blanks) {
        n_blanks = left < most ? left : most;
        sw_buffer_append(writer->out, blanks + 1, n_blanks);
    }
}

/* In front of a key or an element: the comma and the place where it stands. */
static void separate(sw_json_writer *writer)
{
    bool is_flat = writer->is_compact || is_inline(writer);

    give_if_large(writer);
    if (writer->needs_comma)
        sw_buffer_append(writer->out, ", ", is_flat && !writer->is_compact ? 2 : 1);
    if (!is_flat && writer->depth > 0)
        new_line(writer);
}

static void before_value(sw_json_writer *writer)
{
    if (!writer->is_after_key)
        separate(writer);
    writer->is_after_key = false;
    writer->needs_comma = true;
}

static void begin(sw_json_writer *writer, char opening)
{
    before_value(writer);
    sw_buffer_putc(writer->out, opening);
    writer->depth++;
    writer->needs_comma = false;
}

static void end(sw_json_writer *writer, char closing)
{
    bool is_flat = writer->is_compact || is_inline(writer);

    writer->depth--;
    if (writer->needs_comma && !is_flat) /* an empty one is closed on its own line */
        new_line(writer);
    sw_buffer_putc(writer->out, closing);
    writer->needs_comma = true;
    if (writer->depth < writer->inline_from)
        writer->inline_from = 0;
}

void sw_json_begin_object(sw_json_writer *writer)
{
    begin(writer, '{');
}

void sw_json_end_object(sw_json_writer *writer)
{
    end(writer, '}');
}

void sw_json_begin_array(sw_json_writer *writer)
{
    begin(writer, '[');
}

void sw_json_end_array(sw_json_writer *writer)
{
    end(writer, ']');
}

void sw_json_inline(sw_json_writer *writer)
{
    if (writer->inline_from == 0)
        writer->inline_from = writer->depth + 1;
}

void sw_json_key(sw_json_writer *writer, const char *key)
{
    sw_json_key_n(writer, key, strlen(key));
}

void sw_json_key_n(sw_json_writer *writer, const char *key, size_t length)
{
    separate(writer);
    sw_json_escape(writer->out, key, length);
    sw_buffer_append(writer->out, ": ", writer->is_compact ? 1 : 2);
    writer->is_after_key = true;
}

void sw_json_put_string(sw_json_writer *writer, const char *text)
{
    sw_json_put_string_n(writer, text, strlen(text));
}

void sw_json_put_string_n(sw_json_writer *writer, const char *text, size_t length)
{
    before_value(writer);
    sw_json_escape(writer->out, text, length);
}

void sw_json_put_u64(sw_json_writer *writer, uint64_t value)
{
    before_value(writer);
    sw_buffer_u64(writer->out, value);
}

void sw_json_put_i64(sw_json_writer *writer, int64_t value)
{
    before_value(writer);
    if (value < 0)
        sw_buffer_putc(writer->out, '-');
    sw_buffer_u64(writer->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void sw_json_put_bool(sw_json_writer *writer, bool value)
{
    before_value(writer);
    sw_buffer_puts(writer->out, value ? "true" : "false");
}

void sw_json_put_null(sw_json_writer *writer)
{
    before_value(writer);
    sw_buffer_puts(writer->out, "null");
}

void sw_json_put_raw(sw_json_writer *writer, const char *json, size_t length)
{
    before_value(writer);
    sw_buffer_append(writer->out, json, length);
}

static void escape_byte(sw_buffer *out, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    static const char digits[] = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(from, c);

    if (found != NULL) {
        const char pair[2] = {'\\', to[found - from]};
        sw_buffer_append(out, pair, sizeof pair);
    } else {
        const char code[6] = {'\\', 'u', '0', '0', digits[c >> 4 & 1], digits[c & 15]};
        sw_buffer_append(out, code, sizeof code);
    }
}

/* A run of bytes >= 0x80 at the start of the text; what it takes from it. */
static size_t put_wide(sw_buffer *out, const char *text, size_t length)
{
    size_t n_bytes = 0;

    while (n_bytes < length && (unsigned char)text[n_bytes] >= 0x80)
        n_bytes++;
    size_t valid = sw_utf8_valid_prefix(text, n_bytes);
    sw_buffer_append(out, text, valid);
    if (valid == n_bytes)
        return n_bytes;
    sw_buffer_puts(out, "\xef\xbf\xbd");
    return valid + 1;
}

/* What follows the plain beginning of a string that has to be escaped somewhere. */
static void escape_rest(sw_buffer *out, const char *text, size_t length)
{
    size_t i = 0;

    while (i < length) {
        if ((unsigned char)text[i] >= 0x80) {
            i += put_wide(out, text + i, length - i);
        } else {
            escape_byte(out, text[i++]);
        }
        size_t n_plain = sw_text_plain_prefix(text + i, length - i);
        sw_buffer_append(out, text + i, n_plain);
        i += n_plain;
    }
}

void sw_json_begin_string(sw_json_writer *writer)
{
    before_value(writer);
    sw_buffer_putc(writer->out, '"');
}

void sw_json_string_part(sw_json_writer *writer, const char *text, size_t length)
{
    size_t n_plain = sw_text_plain_prefix(text, length);

    sw_buffer_append(writer->out, text, n_plain);
    escape_rest(writer->out, text + n_plain, length - n_plain);
    give_if_large(writer);
}

void sw_json_end_string(sw_json_writer *writer)
{
    sw_buffer_putc(writer->out, '"');
}

void sw_json_escape(sw_buffer *out, const char *text, size_t length)
{
    size_t n_plain = sw_text_plain_prefix(text, length);
    char *to = sw_buffer_room(out, n_plain + 2);

    if (to == NULL)
        return;
    to[0] = '"';
    if (n_plain > 0)
        memcpy(to + 1, text, n_plain);
    to[n_plain + 1] = '"';
    if (n_plain == length) {
        out->length += n_plain + 2;
        return;
    }
    out->length += n_plain + 1;
    escape_rest(out, text + n_plain, length - n_plain);
    sw_buffer_putc(out, '"');
}
