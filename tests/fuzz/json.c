/*
 * The JSON reader and writer on any bytes. Skipping and reading value by value must agree on what is JSON,
 * and what is read and written again must be JSON and, written once more, the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_read.h"
#include "io/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

static void copy_value(sw_json *json, sw_json_writer *writer);

static void copy_object(sw_json *json, sw_json_writer *writer)
{
    sw_json_text key;

    (void)sw_json_enter_object(json);
    sw_json_begin_object(writer);
    while (sw_json_next_key(json, &key)) {
        sw_json_key_n(writer, key.bytes, key.length);
        copy_value(json, writer);
    }
    sw_json_end_object(writer);
}

static void copy_array(sw_json *json, sw_json_writer *writer)
{
    (void)sw_json_enter_array(json);
    sw_json_begin_array(writer);
    while (sw_json_next_element(json))
        copy_value(json, writer);
    sw_json_end_array(writer);
}

static void copy_value(sw_json *json, sw_json_writer *writer)
{
    sw_json_kind kind = sw_json_peek(json);
    const char *from = json->at;
    sw_json_text text;

    if (kind == SW_JSON_OBJECT) {
        copy_object(json, writer);
    } else if (kind == SW_JSON_ARRAY) {
        copy_array(json, writer);
    } else if (kind == SW_JSON_STRING) {
        if (sw_json_string(json, &text))
            sw_json_put_string_n(writer, text.bytes, text.length);
    } else if (sw_json_skip(json)) {
        sw_json_put_raw(writer, from, (size_t)(json->at - from));
    }
}

/* Read by value and write; whether the bytes are JSON. */
static bool copy_document(const void *bytes, size_t n_bytes, sw_buffer *out, bool is_compact)
{
    sw_arena *arena = sw_arena_create((size_t)64 << 20);
    sw_json json;
    sw_json_writer writer;
    sw_error err = {0};

    demand(arena != NULL);
    sw_json_init(&json, bytes, n_bytes, "fuzz", arena, &err);
    sw_json_write_init(&writer, out, is_compact);
    copy_value(&json, &writer);
    bool is_json = sw_json_finish(&json);
    demand(is_json == (json.status == SW_OK));
    demand(is_json || err.what[0] != '\0');
    sw_arena_destroy(arena);
    return is_json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sw_json json;
    sw_buffer once = {0};
    sw_buffer twice = {0};

    sw_json_init(&json, data, n_bytes, "fuzz", NULL, NULL);
    bool is_json = sw_json_skip(&json) && sw_json_finish(&json);
    demand(copy_document(data, n_bytes, &once, n_bytes % 2 == 0) == is_json);
    if (is_json) {
        demand(copy_document(once.bytes, once.length, &twice, n_bytes % 2 == 0));
        demand(once.length == twice.length && memcmp(once.bytes, twice.bytes, once.length) == 0);
    }
    sw_buffer_clear(&once);
    sw_buffer_clear(&twice);
    return 0;
}
