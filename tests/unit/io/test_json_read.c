/* The strict JSON reader: values of every kind, and a table of what RFC 8259 does not allow. */
#include "io/json_read.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

static sw_arena *arena;
static sw_error err;

static int make_arena(void **state)
{
    (void)state;
    arena = sw_arena_create(1 << 20);
    return arena == NULL;
}

static int destroy_arena(void **state)
{
    (void)state;
    sw_arena_destroy(arena);
    return 0;
}

static sw_json start(const char *text)
{
    sw_json json;
    err = (sw_error){0};
    sw_json_init(&json, text, strlen(text), "x", arena, &err);
    return json;
}

static void a_document_is_pulled_value_by_value(void **state)
{
    (void)state;
    sw_json json = start(" { \"a\" : [ 1 , -2 , true , null ] , \"b\" : { } , \"c\" : \"text\" } ");
    sw_json_text text;
    uint64_t number = 0;
    int64_t signed_number = 0;
    bool flag = false;

    assert_int_equal(sw_json_peek(&json), SW_JSON_OBJECT);
    assert_true(sw_json_enter_object(&json));
    assert_true(sw_json_next_key(&json, &text));
    assert_true(sw_json_text_is(text, "a"));
    assert_int_equal(sw_json_peek(&json), SW_JSON_ARRAY);
    assert_true(sw_json_enter_array(&json));
    assert_true(sw_json_next_element(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_NUMBER);
    assert_true(sw_json_u64(&json, &number));
    assert_int_equal(number, 1);
    assert_true(sw_json_next_element(&json));
    assert_true(sw_json_i64(&json, &signed_number));
    assert_int_equal(signed_number, -2);
    assert_true(sw_json_next_element(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_TRUE);
    assert_true(sw_json_bool(&json, &flag));
    assert_true(flag);
    assert_true(sw_json_next_element(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_NULL);
    assert_true(sw_json_null(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_END);
    assert_false(sw_json_next_element(&json));
    assert_true(sw_json_next_key(&json, &text));
    assert_true(sw_json_text_is(text, "b"));
    assert_true(sw_json_enter_object(&json));
    assert_false(sw_json_next_key(&json, &text));
    assert_true(sw_json_next_key(&json, &text));
    assert_int_equal(sw_json_peek(&json), SW_JSON_STRING);
    assert_true(sw_json_string(&json, &text));
    assert_true(sw_json_text_is(text, "text"));
    assert_false(sw_json_next_key(&json, &text));
    assert_true(sw_json_finish(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_END);
    assert_int_equal(json.status, SW_OK);
    assert_int_equal(json.depth, 0);
}

static void plain_strings_are_borrowed_and_escaped_ones_decoded(void **state)
{
    (void)state;
    sw_json_text text;
    sw_json json = start("\"plain \xc3\xa9 text\"");
    assert_true(sw_json_string(&json, &text));
    assert_ptr_equal(text.bytes, json.start + 1);
    assert_true(sw_json_text_is(text, "plain \xc3\xa9 text"));

    json = start("\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u0041\\u00e9\\u20AC\\uD83D\\ude00 end\"");
    assert_true(sw_json_string(&json, &text));
    assert_true(sw_json_text_is(text, "\"\\/\b\f\n\r\t A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 end"));

    json = start("\"a\\u0000b\"");
    assert_true(sw_json_string(&json, &text));
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.bytes, "a\0b", 3);
    assert_false(sw_json_text_is(text, "a"));
}

static void integers_are_read_to_their_last_value(void **state)
{
    (void)state;
    uint64_t number = 1;
    int64_t signed_number = 0;
    sw_json json = start("18446744073709551615");
    assert_true(sw_json_u64(&json, &number));
    assert_true(number == UINT64_MAX);
    json = start("0");
    assert_true(sw_json_u64(&json, &number));
    assert_true(number == 0);
    json = start("-9223372036854775808");
    assert_true(sw_json_i64(&json, &signed_number));
    assert_true(signed_number == INT64_MIN);
    json = start("9223372036854775807");
    assert_true(sw_json_i64(&json, &signed_number));
    assert_true(signed_number == INT64_MAX);
}

typedef struct number_case {
    const char *text;
    const char *what; /* behind "x: " */
} number_case;

// clang-format off
static const number_case bad_u64[] = {
    { "-0",                       "byte 0: a negative number where a whole number should stand" },
    { "-1",                       "byte 0: a negative number where a whole number should stand" },
    { "01",                       "byte 2: a number has leading zeros" },
    { "00",                       "byte 2: a number has leading zeros" },
    { "1.0",                      "byte 1: a fraction or exponent in what must be a whole number" },
    { "1e2",                      "byte 1: a fraction or exponent in what must be a whole number" },
    { "1E2",                      "byte 1: a fraction or exponent in what must be a whole number" },
    { "18446744073709551616",     "byte 20: a number does not fit 64 bits" },
    { "99999999999999999999",     "byte 20: a number does not fit 64 bits" },
    { "100000000000000000000",    "byte 21: a number does not fit 64 bits" },
    { "+1",                       "byte 0: '+' where a whole number should stand" },
    { "\"1\"",                    "byte 0: '\"' where a whole number should stand" },
    { "",                         "byte 0: the text ends where a whole number should stand" },
};

static const number_case bad_i64[] = {
    { "-9223372036854775809",     "byte 20: a number does not fit 64 bits" },
    { "9223372036854775808",      "byte 19: a number does not fit 64 bits" },
    { "- 1",                      "byte 1: byte 0x20 where a whole number should stand" },
    { "--1",                      "byte 1: '-' where a whole number should stand" },
    { "-01",                      "byte 3: a number has leading zeros" },
};
// clang-format on

static void what_is_no_whole_number_is_refused(void **state)
{
    (void)state;
    uint64_t number = 7;
    int64_t signed_number = 7;
    for (size_t i = 0; i < SW_COUNT(bad_u64); i++) {
        sw_json json = start(bad_u64[i].text);
        assert_false(sw_json_u64(&json, &number));
        assert_int_equal(json.status, SW_E_FORMAT);
        assert_string_equal(err.what + 3, bad_u64[i].what);
    }
    for (size_t i = 0; i < SW_COUNT(bad_i64); i++) {
        sw_json json = start(bad_i64[i].text);
        assert_false(sw_json_i64(&json, &signed_number));
        assert_string_equal(err.what + 3, bad_i64[i].what);
    }
    assert_int_equal(number, 7);
    assert_int_equal(signed_number, 7);
}

// clang-format off
static const char *const good_documents[] = {
    "0", "-0", "1.5", "-1.5e+10", "1E-2", "true", "false", "null", "\"\"", "[]", "{}", "[[],{}]", "\t\r\n 1 \t\r\n",
    "{\"a\":1,\"a\":2}", "{\"\":{\"\":[{\"\":\"\"}]}}", "\"\\u0000\\ud800\\udc00\"", "[1,2.0,\"x\",null,true]",
    "\"\x7f\"", "\"\xf4\x8f\xbf\xbf\"",
};

static const char *const bad_documents[] = {
    "", " ", "{", "[", "\"", "\"a", "tru", "True", "nul", "nulll", "01", "-", "-a", ".5", "1.", "1.e1", "1e", "1e+",
    "+1", "0x10", "NaN", "Infinity", "[1,]", "[,1]", "[1 2]", "[1", "[1}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
    "{,\"a\":1}", "{a:1}", "{'a':1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":1]", "{1:2}", "1 2", "{} {}", "]",
    "}", "\"\t\"", "\"\n\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\", "\"\\u", "\"\\ud800\"", "\"\\ud800x\"",
    "\"\\ud800\\n\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\x80\"", "\"\xc3\"", "\"\xed\xa0\x80\"",
    "\"\xc0\x80\"", "\xef\xbb\xbf{}", "// a\n1", "[1]/**/", "1;",
};
// clang-format on

static void right_documents_are_skipped_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(good_documents); i++) {
        sw_json json = start(good_documents[i]);
        if (!sw_json_skip(&json) || !sw_json_finish(&json)) {
            fail_msg("%s: %s", good_documents[i], err.what);
        }
    }
}

static void wrong_documents_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(bad_documents); i++) {
        sw_json json = start(bad_documents[i]);
        if (sw_json_skip(&json) && sw_json_finish(&json)) {
            fail_msg("%s was taken", bad_documents[i]);
        }
        assert_int_equal(json.status, SW_E_FORMAT);
        assert_int_equal(err.status, SW_E_FORMAT);
        assert_memory_equal(err.what, "x: byte ", 8);
    }
}

static void messages_say_what_stands_where(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *what;
    } cases[] = {
        {"[1 2]",          "x: byte 3: '2' where ',' or ']' should stand"                             },
        {"{\"a\" 1}",      "x: byte 5: '1' where ':' should stand"                                    },
        {"[\"\x01\"]",     "x: byte 2: control character 0x01 in a string"                            },
        {"[\"\\q\"]",      "x: byte 2: a bad escape in a string"                                      },
        {"[\"a\xff\"]",    "x: byte 3: a string is not UTF-8"                                         },
        {"[\"abc",         "x: byte 5: the text ends where the closing quote of a string should stand"},
        {"\xef\xbb\xbf{}", "x: byte 0: byte 0xef where a value should stand"                          },
    };
    for (size_t i = 0; i < SW_COUNT(cases); i++) {
        sw_json json = start(cases[i].text);
        assert_false(sw_json_skip(&json));
        assert_string_equal(err.what, cases[i].what);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    char text[2 * SW_JSON_MAX_DEPTH + 3];
    memset(text, '[', SW_JSON_MAX_DEPTH + 1);
    memset(text + SW_JSON_MAX_DEPTH + 1, ']', SW_JSON_MAX_DEPTH + 1);
    text[sizeof text - 1] = '\0';
    sw_json json = start(text);
    assert_false(sw_json_skip(&json));
    assert_int_equal(json.status, SW_E_LIMIT);
    assert_string_equal(err.what, "x: byte 65: objects and arrays nested too deeply");

    text[sizeof text - 2] = '\0';
    json = start(text + 1);
    assert_true(sw_json_skip(&json) && sw_json_finish(&json));
}

static void the_first_failure_stands_and_all_later_calls_say_no(void **state)
{
    (void)state;
    sw_json json = start("[x]");
    sw_json_text text;
    uint64_t number = 0;
    int64_t signed_number = 0;
    bool flag = false;

    assert_true(sw_json_enter_array(&json));
    assert_true(sw_json_next_element(&json));
    assert_false(sw_json_u64(&json, &number));
    assert_false(sw_json_fail(&json, "", "later"));
    assert_false(sw_json_enter_array(&json));
    assert_false(sw_json_enter_object(&json));
    assert_false(sw_json_next_element(&json));
    assert_false(sw_json_next_key(&json, &text));
    assert_false(sw_json_string(&json, &text));
    assert_false(sw_json_u64(&json, &number));
    assert_false(sw_json_i64(&json, &signed_number));
    assert_false(sw_json_bool(&json, &flag));
    assert_false(sw_json_null(&json));
    assert_false(sw_json_skip(&json));
    assert_false(sw_json_finish(&json));
    assert_int_equal(sw_json_peek(&json), SW_JSON_END);
    assert_string_equal(err.what, "x: byte 1: 'x' where a whole number should stand");
}

static void a_value_of_another_kind_is_refused(void **state)
{
    (void)state;
    bool flag = false;
    sw_json json = start("1");
    assert_false(sw_json_bool(&json, &flag));
    assert_string_equal(err.what, "x: byte 0: '1' where true or false should stand");
    json = start("1");
    assert_false(sw_json_null(&json));
    assert_string_equal(err.what, "x: byte 0: '1' where null should stand");
    json = start("[]");
    assert_false(sw_json_enter_object(&json));
    assert_string_equal(err.what, "x: byte 0: '[' where an object should stand");
}

static void a_callers_own_failure_names_the_place(void **state)
{
    (void)state;
    sw_json json = start("{\"a\":1}");
    sw_json_text key;
    assert_true(sw_json_enter_object(&json));
    assert_true(sw_json_next_key(&json, &key));
    assert_false(sw_json_fail(&json, "remove it", "unknown key '%.*s'", (int)key.length, key.bytes));
    assert_string_equal(err.what, "x: byte 5: unknown key 'a'");
    assert_string_equal(err.help, "remove it");
}

static void a_raw_string_is_checked_and_decoded_later(void **state)
{
    (void)state;
    static const char text[] = "[\"a\\u00e9\\n\\\"b\",\"plain\",\"\\ud800\"]";
    sw_json json;
    sw_json_text raw;
    sw_json_text out;
    sw_json_init(&json, text, sizeof text - 1, "x.json", arena, &err);
    assert_true(sw_json_enter_array(&json) && sw_json_next_element(&json));
    assert_true(sw_json_raw_string(&json, &raw));
    assert_ptr_equal(raw.bytes, text + 2);
    assert_int_equal(raw.length, 12);
    assert_int_equal(sw_json_decode(raw, &out, arena, "x.json", &err), SW_OK);
    assert_true(sw_json_text_is(out, "a\xc3\xa9\n\"b"));
    assert_true(sw_json_next_element(&json) && sw_json_raw_string(&json, &raw));
    assert_int_equal(sw_json_decode(raw, &out, arena, "x.json", &err), SW_OK);
    assert_true(sw_json_text_is(out, "plain") && out.bytes != raw.bytes);
    assert_true(sw_json_next_element(&json));
    assert_false(sw_json_raw_string(&json, &raw)); /* half a surrogate */
    assert_int_equal(json.status, SW_E_FORMAT);
}

/* A mapped file can change between the check and the decoding: half surrogates would be longer decoded than
 * raw. */
static void a_raw_string_that_changed_is_refused(void **state)
{
    (void)state;
    static const char *const raws[] = {"\\udc00\\udc00", "\\ud800", "ab\\u12", "\\u"};
    for (size_t i = 0; i < SW_COUNT(raws); i++) {
        sw_json_text out;
        err = (sw_error){0};
        sw_status status =
            sw_json_decode((sw_json_text){raws[i], strlen(raws[i])}, &out, arena, "x.json", &err);
        assert_int_equal(status, SW_E_FORMAT);
        assert_string_equal(err.what, "x.json: changed while it was read");
    }
}

static void no_memory_for_an_escaped_string_is_reported(void **state)
{
    (void)state;
    int64_t before = sw_alloc_live();
    sw_arena *empty = sw_arena_create(1 << 20);
    sw_json json;
    sw_json_text text;
    sw_json_init(&json, "\"\\n\"", 4, "x", empty, &err);
    sw_alloc_fail_at(1);
    assert_false(sw_json_string(&json, &text));
    assert_int_equal(json.status, SW_E_NO_MEMORY);
    assert_string_equal(err.what, "no memory for x");
    sw_arena_destroy(empty);
    assert_int_equal(sw_alloc_live(), before);
}

static void skipping_takes_no_memory(void **state)
{
    (void)state;
    sw_json json = start("{\"\\u0061\":[\"\\n\",{\"\\t\":\"\\r\"}]}");
    json.arena = NULL;
    assert_true(sw_json_skip(&json) && sw_json_finish(&json));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_pulled_value_by_value),
        cmocka_unit_test(plain_strings_are_borrowed_and_escaped_ones_decoded),
        cmocka_unit_test(integers_are_read_to_their_last_value),
        cmocka_unit_test(what_is_no_whole_number_is_refused),
        cmocka_unit_test(right_documents_are_skipped_whole),
        cmocka_unit_test(wrong_documents_are_refused),
        cmocka_unit_test(messages_say_what_stands_where),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(the_first_failure_stands_and_all_later_calls_say_no),
        cmocka_unit_test(a_value_of_another_kind_is_refused),
        cmocka_unit_test(a_callers_own_failure_names_the_place),
        cmocka_unit_test(a_raw_string_is_checked_and_decoded_later),
        cmocka_unit_test(a_raw_string_that_changed_is_refused),
        cmocka_unit_test(no_memory_for_an_escaped_string_is_reported),
        cmocka_unit_test(skipping_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, make_arena, destroy_arena);
}
