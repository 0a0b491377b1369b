/* The JSON writer: its three forms byte for byte, and strings that come back as they went in. */
#include "io/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"
#include "io/json_read.h"

static void write_sample(sw_json_writer *writer)
{
    sw_json_begin_object(writer);
    sw_json_key(writer, "mesh");
    sw_json_inline(writer);
    sw_json_begin_object(writer);
    sw_json_key(writer, "tp");
    sw_json_put_u64(writer, 4);
    sw_json_key(writer, "axes");
    sw_json_begin_array(writer);
    sw_json_put_string(writer, "tp");
    sw_json_put_i64(writer, -1);
    sw_json_end_array(writer);
    sw_json_end_object(writer);
    sw_json_key(writer, "empty");
    sw_json_begin_array(writer);
    sw_json_end_array(writer);
    sw_json_key(writer, "rows");
    sw_json_begin_array(writer);
    sw_json_put_bool(writer, true);
    sw_json_put_null(writer);
    sw_json_inline(writer);
    sw_json_begin_array(writer);
    sw_json_end_array(writer);
    sw_json_begin_object(writer);
    sw_json_key_n(writer, "rawX", 3);
    sw_json_put_raw(writer, "{\"x\":1}", 7);
    sw_json_end_object(writer);
    sw_json_end_array(writer);
    sw_json_end_object(writer);
}

static void assert_sample(bool is_compact, const char *expected)
{
    sw_buffer out = {0};
    sw_json_writer writer;
    sw_json_write_init(&writer, &out, is_compact);
    write_sample(&writer);
    assert_string_equal(sw_buffer_text(&out), expected);
    assert_int_equal(writer.depth, 0);
    sw_buffer_clear(&out);
}

static void the_indented_form_has_a_line_a_member_and_inline_values(void **state)
{
    (void)state;
    assert_sample(false, "{\n"
                         " \"mesh\": {\"tp\": 4, \"axes\": [\"tp\", -1]},\n"
                         " \"empty\": [],\n"
                         " \"rows\": [\n"
                         "  true,\n"
                         "  null,\n"
                         "  [],\n"
                         "  {\n"
                         "   \"raw\": {\"x\":1}\n"
                         "  }\n"
                         " ]\n"
                         "}");
}

static void the_compact_form_has_no_blank(void **state)
{
    (void)state;
    assert_sample(true,
                  "{\"mesh\":{\"tp\":4,\"axes\":[\"tp\",-1]},\"empty\":[],\"rows\":[true,null,[],{\"raw\":{"
                  "\"x\":1}}]}");
}

static void deep_nesting_is_indented_to_its_depth(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_json_writer writer;
    sw_json_write_init(&writer, &out, false);
    for (int i = 0; i < 70; i++) {
        sw_json_begin_array(&writer);
    }
    sw_json_put_u64(&writer, 7);
    const char *text = sw_buffer_text(&out);
    size_t length = strlen(text);
    assert_int_equal(text[length - 72], '\n');
    assert_int_equal(strspn(text + length - 71, " "), 70);
    sw_buffer_clear(&out);
}

static void numbers_are_written_to_their_last_value(void **state)
{
    (void)state;
    sw_buffer out = {0};
    sw_json_writer writer;
    sw_json_write_init(&writer, &out, true);
    sw_json_begin_array(&writer);
    sw_json_put_i64(&writer, INT64_MIN);
    sw_json_put_i64(&writer, INT64_MAX);
    sw_json_put_u64(&writer, UINT64_MAX);
    sw_json_put_bool(&writer, false);
    sw_json_end_array(&writer);
    assert_string_equal(sw_buffer_text(&out),
                        "[-9223372036854775808,9223372036854775807,18446744073709551615,false]");
    sw_buffer_clear(&out);
}

static void strings_are_escaped_where_they_must_be(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *json;
    } cases[] = {
        {"",                                          "\"\""                                         },
        {"model.layers.0.mlp.up_proj.weight",         "\"model.layers.0.mlp.up_proj.weight\""        },
        {"say \"hi\" \\ /",                           "\"say \\\"hi\\\" \\\\ /\""                    },
        {"\b\f\n\r\t\x01\x1f\x7f",                    "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""        },
        {"a long plain start, then \"",               "\"a long plain start, then \\\"\""            },
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"caf\xe9!",                                  "\"caf\xef\xbf\xbd!\""                         },
        {"\xc3\xa9\xff\xff",                          "\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\""         },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_buffer out = {0};
        sw_json_escape(&out, cases[i].text, strlen(cases[i].text));
        assert_string_equal(sw_buffer_text(&out), cases[i].json);
        sw_buffer_clear(&out);
    }
    sw_buffer out = {0};
    sw_json_escape(&out, "a\0b", 3);
    sw_json_escape(&out, NULL, 0);
    assert_string_equal(sw_buffer_text(&out), "\"a\\u0000b\"\"\"");
    sw_buffer_clear(&out);
}

static void every_byte_at_every_place_survives_the_round_trip(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    for (int c = 0; c < 128; c++) {
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            sw_buffer out = {0};
            sw_json json;
            sw_json_text back;
            memset(text, 'n', sizeof text);
            text[at] = (char)c;
            sw_json_escape(&out, text, sizeof text);
            sw_json_init(&json, out.bytes, out.length, "x", arena, NULL);
            assert_true(sw_json_string(&json, &back) && sw_json_finish(&json));
            assert_int_equal(back.length, sizeof text);
            assert_memory_equal(back.bytes, text, sizeof text);
            sw_buffer_clear(&out);
        }
    }
    sw_arena_destroy(arena);
}

static void missing_memory_is_seen_in_the_buffer(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    for (uint64_t n = 1; n <= 2; n++) {
        sw_buffer out = {0};
        sw_json_writer writer;
        sw_json_write_init(&writer, &out, false);
        sw_alloc_fail_at(n);
        for (int i = 0; i < 4; i++) {
            write_sample(&writer);
        }
        sw_alloc_fail_at(0);
        assert_true(out.failed);
        assert_null(sw_buffer_text(&out));
        sw_buffer_clear(&out);
    }
    assert_int_equal(sw_alloc_live(), before);
}

/* ---- into a sink ---- */

/* Takes pieces, and fails at the n-th. */
typedef struct taker {
    sw_buffer all;
    size_t longest;
    uint32_t n_pieces;
    uint32_t fail_at; /* counted from 1; 0: never */
} taker;

static sw_status take(void *user, const void *bytes, size_t n_bytes, sw_error *err)
{
    taker *t = user;
    if (++t->n_pieces == t->fail_at)
        return SW_FAIL(err, SW_E_IO, "", "the disk is full");
    sw_buffer_append(&t->all, bytes, n_bytes);
    t->longest = n_bytes > t->longest ? n_bytes : t->longest;
    return SW_OK;
}

enum { MANY = 20000 };

static void put_many(sw_json_writer *writer)
{
    sw_json_begin_object(writer);
    sw_json_key(writer, "numbers");
    sw_json_begin_array(writer);
    for (uint64_t i = 0; i < MANY; i++)
        sw_json_put_u64(writer, i);
    sw_json_end_array(writer);
    sw_json_key(writer, "text");
    sw_json_begin_string(writer);
    for (uint64_t i = 0; i < MANY; i++)
        sw_json_string_part(writer, "say \"\xc3\xa9\"\n", 9);
    sw_json_end_string(writer);
    sw_json_end_object(writer);
}

static void a_sink_gets_the_same_bytes_in_pieces(void **state)
{
    (void)state;
    sw_buffer whole = {0};
    sw_buffer room = {0};
    taker taken = {0};
    const sw_sink sink = {take, &taken};
    sw_json_writer writer;
    sw_json_write_init(&writer, &whole, false);
    put_many(&writer);
    assert_int_equal(sw_json_write_end(&writer), SW_OK);
    sw_json_write_to(&writer, &room, false, &sink, NULL);
    put_many(&writer);
    assert_int_equal(sw_json_write_end(&writer), SW_OK);
    assert_true(whole.length > 300000);
    assert_int_equal(taken.all.length, whole.length);
    assert_memory_equal(taken.all.bytes, whole.bytes, whole.length);
    assert_true(taken.n_pieces > 4);
    assert_true(taken.longest < (1 << 16) + 64);
    assert_true(room.capacity <= 1 << 17);
    sw_buffer_clear(&whole);
    sw_buffer_clear(&room);
    sw_buffer_clear(&taken.all);
}

static void a_string_in_parts_is_the_string(void **state)
{
    (void)state;
    sw_buffer parts = {0};
    sw_json_writer writer;
    sw_json_write_init(&writer, &parts, true);
    sw_json_begin_array(&writer);
    sw_json_begin_string(&writer);
    sw_json_string_part(&writer, "{\"a\":", 5);
    sw_json_string_part(&writer, "", 0);
    sw_json_string_part(&writer, "\"caf\xc3\xa9\\\"}", 9);
    sw_json_end_string(&writer);
    sw_json_put_u64(&writer, 1);
    sw_json_end_array(&writer);
    assert_string_equal(sw_buffer_text(&parts), "[\"{\\\"a\\\":\\\"caf\xc3\xa9\\\\\\\"}\",1]");
    sw_buffer_clear(&parts);
}

static void a_sink_that_fails_ends_the_writing_with_its_failure(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 5; n++) {
        sw_buffer room = {0};
        taker taken = {.fail_at = n};
        const sw_sink sink = {take, &taken};
        sw_json_writer writer;
        sw_error err = {0};
        sw_json_write_to(&writer, &room, true, &sink, &err);
        put_many(&writer);
        assert_int_equal(sw_json_write_end(&writer), SW_E_IO);
        assert_string_equal(err.what, "the disk is full");
        assert_int_equal(taken.n_pieces, n); /* it is not asked again */
        sw_buffer_clear(&room);
        sw_buffer_clear(&taken.all);
    }
}

static void no_memory_for_a_piece_is_said(void **state)
{
    (void)state;
    sw_buffer room = {0};
    taker taken = {0};
    const sw_sink sink = {take, &taken};
    sw_json_writer writer;
    sw_error err = {0};
    sw_json_write_to(&writer, &room, true, &sink, &err);
    sw_alloc_fail_at(3);
    put_many(&writer);
    sw_alloc_fail_at(0);
    assert_int_equal(sw_json_write_end(&writer), SW_E_NO_MEMORY);
    assert_string_equal(err.what, "no memory for JSON text");
    assert_int_equal(taken.n_pieces, 0);
    sw_buffer_clear(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_indented_form_has_a_line_a_member_and_inline_values),
        cmocka_unit_test(the_compact_form_has_no_blank),
        cmocka_unit_test(deep_nesting_is_indented_to_its_depth),
        cmocka_unit_test(numbers_are_written_to_their_last_value),
        cmocka_unit_test(strings_are_escaped_where_they_must_be),
        cmocka_unit_test(every_byte_at_every_place_survives_the_round_trip),
        cmocka_unit_test(missing_memory_is_seen_in_the_buffer),
        cmocka_unit_test(a_sink_gets_the_same_bytes_in_pieces),
        cmocka_unit_test(a_string_in_parts_is_the_string),
        cmocka_unit_test(a_sink_that_fails_ends_the_writing_with_its_failure),
        cmocka_unit_test(no_memory_for_a_piece_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
