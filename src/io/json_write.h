/*
 * Streaming writer of JSON into a buffer, or through a buffer into a sink; compact or indented by one blank a
 * level. Key order is call order.
 */
#ifndef SW_IO_JSON_WRITE_H
#define SW_IO_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sink.h"

typedef struct sw_json_writer {
    sw_buffer *out;
    uint32_t depth;
    uint32_t inline_from; /* depth at which everything below stays on one line; 0: never */
    bool needs_comma;
    bool is_after_key; /* the value stands behind its key, not on a line of its own */
    bool is_compact;
    const sw_sink *sink; /* NULL: everything stays in the buffer */
    sw_status status;    /* of the sink; after a failure nothing more is given to it */
    sw_error *err;
} sw_json_writer;

void sw_json_write_init(sw_json_writer *writer, sw_buffer *out, bool is_compact);
/* Into `sink`, in pieces of some 64 KiB that end between two values; `room` holds a piece while it grows. */
void sw_json_write_to(sw_json_writer *writer, sw_buffer *room, bool is_compact, const sw_sink *sink,
                      sw_error *err);
/* The last piece. The sink's failure, or SW_E_NO_MEMORY. */
sw_status sw_json_write_end(sw_json_writer *writer);
void sw_json_begin_object(sw_json_writer *writer);
void sw_json_end_object(sw_json_writer *writer);
void sw_json_begin_array(sw_json_writer *writer);
void sw_json_end_array(sw_json_writer *writer);
/* The value that comes next (object or array) is written on one line. */
void sw_json_inline(sw_json_writer *writer);
void sw_json_key(sw_json_writer *writer, const char *key);
void sw_json_key_n(sw_json_writer *writer, const char *key, size_t length);
void sw_json_put_string(sw_json_writer *writer, const char *text);
void sw_json_put_string_n(sw_json_writer *writer, const char *text, size_t length);
/* A string that comes in parts; none of them ends inside a character. */
void sw_json_begin_string(sw_json_writer *writer);
void sw_json_string_part(sw_json_writer *writer, const char *text, size_t length);
void sw_json_end_string(sw_json_writer *writer);
void sw_json_put_u64(sw_json_writer *writer, uint64_t value);
void sw_json_put_i64(sw_json_writer *writer, int64_t value);
void sw_json_put_bool(sw_json_writer *writer, bool value);
void sw_json_put_null(sw_json_writer *writer);
/* Bytes that are already one JSON value, as they are. */
void sw_json_put_raw(sw_json_writer *writer, const char *json, size_t length);
/* A quoted and escaped string appended to a plain buffer. */
void sw_json_escape(sw_buffer *out, const char *text, size_t length);

#endif
