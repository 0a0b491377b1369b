/*
 * The pull reader of io/json_read.h. A string is checked whole while its end is looked for (UTF-8, escapes,
 * control characters), so decoding it later can only fail for want of memory, and skipping costs no memory.
 * The state is a cursor and `is_first`; what container we are in is known to the caller's code path.
 */
#include "io/json_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "base/text.h"

void sw_json_init(sw_json *json, const void *bytes, size_t n_bytes, const char *source, sw_arena *arena,
                  sw_error *err)
{
    const char *start = n_bytes == 0 ? "" : bytes;
    *json = (sw_json){
        .start = start, .at = start, .end = start + n_bytes, .source = source, .arena = arena, .err = err};
}

static bool fail_as(sw_json *json, sw_status status, const char *help, const char *what)
{
    if (json->status == SW_OK) {
        json->status = SW_FAIL(json->err, status, help, "%.200s: byte %td: %s", json->source,
                               json->at - json->start, what);
    }
    return false;
}

bool sw_json_fail(sw_json *json, const char *help, const char *format, ...)
{
    char what[400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return fail_as(json, SW_E_FORMAT, help, what);
}

bool sw_json_text_is(sw_json_text text, const char *word)
{
    return strlen(word) == text.length && memcmp(word, text.bytes, text.length) == 0;
}

static void skip_white(sw_json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
}

/* "expected X" at the current place, with what stands there instead. */
static bool fail_expected(sw_json *json, const char *expected)
{
    if (json->at == json->end) {
        return sw_json_fail(json, "the file is cut off; copy or download it again",
                            "the text ends where %s should stand", expected);
    }
    unsigned char c = (unsigned char)*json->at;
    if (c > 0x20 && c < 0x7f)
        return sw_json_fail(json, "the file is not valid JSON", "'%c' where %s should stand", c, expected);
    return sw_json_fail(json, "the file is not valid JSON", "byte 0x%02x where %s should stand", c, expected);
}

/* Step over `c` if it stands next. */
static bool take(sw_json *json, char c)
{
    if (json->at < json->end && (unsigned char)*json->at <= ' ')
        skip_white(json);
    if (json->at == json->end || *json->at != c)
        return false;
    json->at++;
    return true;
}

sw_json_kind sw_json_peek(sw_json *json)
{
    if (json->status != SW_OK)
        return SW_JSON_END;
    skip_white(json);
    if (json->at == json->end)
        return SW_JSON_END;
    switch (*json->at) {
    case '{':
        return SW_JSON_OBJECT;
    case '[':
        return SW_JSON_ARRAY;
    case '"':
        return SW_JSON_STRING;
    case 't':
        return SW_JSON_TRUE;
    case 'f':
        return SW_JSON_FALSE;
    case 'n':
        return SW_JSON_NULL;
    case '}':
    case ']':
        return SW_JSON_END;
    default:
        if (*json->at == '-' || (*json->at >= '0' && *json->at <= '9'))
            return SW_JSON_NUMBER;
        (void)fail_expected(json, "a value");
        return SW_JSON_END;
    }
}

static bool enter(sw_json *json, char opening, const char *expected)
{
    if (json->status != SW_OK)
        return false;
    if (!take(json, opening))
        return fail_expected(json, expected);
    if (json->depth == SW_JSON_MAX_DEPTH)
        return fail_as(json, SW_E_LIMIT, "", "objects and arrays nested too deeply");
    json->depth++;
    json->is_first = true;
    return true;
}

bool sw_json_enter_object(sw_json *json)
{
    return enter(json, '{', "an object");
}

bool sw_json_enter_array(sw_json *json)
{
    return enter(json, '[', "an array");
}

/* In front of the next element of a container: true when there is one, the comma is consumed. */
static bool next_in(sw_json *json, char closing, const char *expected)
{
    if (json->status != SW_OK)
        return false;
    if (take(json, closing)) {
        json->depth--;
        json->is_first = false;
        return false;
    }
    if (!json->is_first && !take(json, ','))
        return fail_expected(json, expected);
    json->is_first = false;
    return true;
}

bool sw_json_next_element(sw_json *json)
{
    return next_in(json, ']', "',' or ']'");
}

static bool hex_digits(const char *at, const char *end, uint32_t *out)
{
    *out = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = 0;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (uint32_t)(c - 'a') + 10;
        } else if (c >= 'A' && c <= 'F') {
            digit = (uint32_t)(c - 'A') + 10;
        } else {
            return false;
        }
        *out = *out << 4 | digit;
    }
    return true;
}

/*
 * Code point of the \u escape at `at` (on the 'u'), a surrogate pair taken as one; *n_bytes is what it takes
 * from the 'u' on. False for bad digits and unpaired surrogates.
 */
static bool unicode_escape(const char *at, const char *end, uint32_t *code, size_t *n_bytes)
{
    uint32_t low = 0;

    if (!hex_digits(at + 1, end, code) || (*code >= 0xdc00 && *code <= 0xdfff))
        return false;
    *n_bytes = 5;
    if (*code < 0xd800 || *code > 0xdbff)
        return true;
    if (end - at < 11 || at[5] != '\\' || at[6] != 'u' || !hex_digits(at + 7, end, &low) || low < 0xdc00 ||
        low > 0xdfff)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    *n_bytes = 11;
    return true;
}

/* What a single-letter escape stands for, or 0. */
static char simple_escape(char letter)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = strchr(letters, letter); /* of a NUL: the end, whose meaning is NUL too */
    return meanings[found == NULL ? sizeof letters - 1 : (size_t)(found - letters)];
}

/* Step over the escape at the cursor (on the backslash), checking it. */
static bool skip_escape(sw_json *json)
{
    uint32_t code = 0;
    size_t n_bytes = 0;

    if (json->end - json->at >= 2 && simple_escape(json->at[1]) != '\0') {
        json->at += 2;
        return true;
    }
    if (json->end - json->at >= 2 && json->at[1] == 'u' &&
        unicode_escape(json->at + 1, json->end, &code, &n_bytes)) {
        json->at += 1 + n_bytes;
        return true;
    }
    return sw_json_fail(json, "the file is not valid JSON", "a bad escape in a string");
}

/* Step over the non-ASCII run at the cursor, checking it. */
static bool skip_wide(sw_json *json)
{
    const char *at = json->at;

    while (at < json->end && (unsigned char)*at >= 0x80)
        at++;
    size_t length = (size_t)(at - json->at);
    size_t valid = sw_utf8_valid_prefix(json->at, length);
    json->at += valid;
    return valid == length || sw_json_fail(json, "the file is not valid JSON", "a string is not UTF-8");
}

/* Step over a string; *raw is what stands between its quotes. */
static bool scan_string(sw_json *json, sw_json_text *raw, bool *has_escape, const char *expected)
{
    if (json->status != SW_OK)
        return false;
    if (!take(json, '"'))
        return fail_expected(json, expected);
    *has_escape = false;
    raw->bytes = json->at;
    for (;;) {
        json->at += sw_text_plain_prefix(json->at, (size_t)(json->end - json->at));
        if (json->at == json->end)
            return fail_expected(json, "the closing quote of a string");
        unsigned char c = (unsigned char)*json->at;
        if (c == '"')
            break;
        if (c == '\\') {
            *has_escape = true;
            if (!skip_escape(json))
                return false;
        } else if (c < 0x20) {
            return sw_json_fail(json, "the file is not valid JSON", "control character 0x%02x in a string",
                                c);
        } else if (!skip_wide(json)) {
            return false;
        }
    }
    raw->length = (size_t)(json->at - raw->bytes);
    json->at++;
    return true;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* In place: an escape is never shorter than what it stands for. */
sw_status sw_json_decode(sw_json_text raw, sw_json_text *out, sw_arena *arena, const char *source,
                         sw_error *err)
{
    char *copy = sw_arena_copy(arena, raw.bytes, raw.length);
    if (copy == NULL)
        return sw_arena_fail(arena, source, err);
    const char *from = copy;
    const char *end = copy + raw.length;
    char *to = copy;
    while (from < end) {
        uint32_t code = 0;
        size_t n_bytes = 0;
        if (*from != '\\') {
            *to++ = *from++;
        } else if (from[1] != 'u') {
            *to++ = simple_escape(from[1]);
            from += 2;
        } else if (unicode_escape(from + 1, end, &code, &n_bytes)) {
            from += 1 + n_bytes;
            to = put_utf8(to, code);
        } else { /* it was right when it was checked */
            return SW_FAIL(err, SW_E_FORMAT, "nothing may write to it meanwhile",
                           "%s: changed while it was read", source);
        }
    }
    *out = (sw_json_text){copy, (size_t)(to - copy)};
    return SW_OK;
}

static bool read_text(sw_json *json, sw_json_text *out, const char *expected)
{
    bool has_escape = false;
    if (!scan_string(json, out, &has_escape, expected))
        return false;
    if (has_escape)
        json->status = sw_json_decode(*out, out, json->arena, json->source, json->err);
    return json->status == SW_OK;
}

bool sw_json_next_key(sw_json *json, sw_json_text *key)
{
    if (!next_in(json, '}', "',' or '}'") || !read_text(json, key, "a name in quotes"))
        return false;
    return take(json, ':') || fail_expected(json, "':'");
}

bool sw_json_string(sw_json *json, sw_json_text *out)
{
    return read_text(json, out, "a string");
}

bool sw_json_raw_string(sw_json *json, sw_json_text *raw)
{
    bool has_escape = false;
    return scan_string(json, raw, &has_escape, "a string");
}

/* Digits from the cursor on; a number that goes on as a fraction or an exponent is refused. */
static bool read_digits(sw_json *json, uint64_t *out)
{
    enum { SAFE_DIGITS = 19 }; /* as many always fit 64 bits */
    const char *first = json->at;
    uint64_t value = 0;
    bool fits = true;

    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
        uint64_t digit = (uint64_t)(*json->at - '0');
        if (json->at - first < SAFE_DIGITS) {
            value = value * 10 + digit;
        } else {
            fits = fits && sw_mul_u64(value, 10, &value) && sw_add_u64(value, digit, &value);
        }
    }
    if (json->at == first)
        return fail_expected(json, "a whole number");
    if (*first == '0' && json->at > first + 1)
        return sw_json_fail(json, "the file is not valid JSON", "a number has leading zeros");
    if (!fits)
        return sw_json_fail(json, "", "a number does not fit 64 bits");
    if (json->at < json->end && (*json->at == '.' || *json->at == 'e' || *json->at == 'E'))
        return sw_json_fail(json, "", "a fraction or exponent in what must be a whole number");
    *out = value;
    return true;
}

bool sw_json_u64(sw_json *json, uint64_t *out)
{
    if (json->status != SW_OK)
        return false;
    skip_white(json);
    if (json->at < json->end && *json->at == '-')
        return sw_json_fail(json, "", "a negative number where a whole number should stand");
    return read_digits(json, out);
}

bool sw_json_i64(sw_json *json, int64_t *out)
{
    uint64_t value = 0;

    if (json->status != SW_OK)
        return false;
    bool is_negative = take(json, '-');
    if (!read_digits(json, &value))
        return false;
    if (value > (uint64_t)INT64_MAX + (is_negative ? 1U : 0U))
        return sw_json_fail(json, "", "a number does not fit 64 bits");
    *out = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static bool take_word(sw_json *json, const char *word)
{
    size_t length = strlen(word);

    skip_white(json);
    if ((size_t)(json->end - json->at) < length || memcmp(json->at, word, length) != 0)
        return false;
    json->at += length;
    return true;
}

bool sw_json_bool(sw_json *json, bool *out)
{
    if (json->status != SW_OK)
        return false;
    bool is_true = take_word(json, "true");
    if (!is_true && !take_word(json, "false"))
        return fail_expected(json, "true or false");
    *out = is_true;
    return true;
}

bool sw_json_null(sw_json *json)
{
    if (json->status != SW_OK)
        return false;
    return take_word(json, "null") || fail_expected(json, "null");
}

static bool skip_run_of_digits(sw_json *json)
{
    const char *first = json->at;

    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return json->at > first || fail_expected(json, "a digit");
}

/* Any number of RFC 8259. */
static bool skip_number(sw_json *json)
{
    (void)take(json, '-');
    const char *first = json->at;
    if (!skip_run_of_digits(json))
        return false;
    if (*first == '0' && json->at > first + 1)
        return sw_json_fail(json, "the file is not valid JSON", "a number has leading zeros");
    if (json->at < json->end && *json->at == '.') {
        json->at++;
        if (!skip_run_of_digits(json))
            return false;
    }
    if (json->at == json->end || (*json->at != 'e' && *json->at != 'E'))
        return true;
    json->at++;
    if (json->at < json->end && (*json->at == '+' || *json->at == '-'))
        json->at++;
    return skip_run_of_digits(json);
}

/* Names inside what is skipped are checked but not decoded. */
static bool skip_members(sw_json *json)
{
    while (next_in(json, '}', "',' or '}'")) {
        sw_json_text name;
        bool has_escape = false;
        if (!scan_string(json, &name, &has_escape, "a name in quotes"))
            return false;
        if (!take(json, ':'))
            return fail_expected(json, "':'");
        if (!sw_json_skip(json))
            return false;
    }
    return json->status == SW_OK;
}

static bool skip_elements(sw_json *json)
{
    while (sw_json_next_element(json)) {
        if (!sw_json_skip(json))
            return false;
    }
    return json->status == SW_OK;
}

/* Recursion is bounded by SW_JSON_MAX_DEPTH. */
bool sw_json_skip(sw_json *json)
{
    sw_json_text text;
    bool flag = false;

    switch (sw_json_peek(json)) {
    case SW_JSON_OBJECT:
        return sw_json_enter_object(json) && skip_members(json);
    case SW_JSON_ARRAY:
        return sw_json_enter_array(json) && skip_elements(json);
    case SW_JSON_STRING:
        return scan_string(json, &text, &flag, "a string");
    case SW_JSON_NUMBER:
        return skip_number(json);
    case SW_JSON_TRUE:
    case SW_JSON_FALSE:
        return sw_json_bool(json, &flag);
    case SW_JSON_NULL:
        return sw_json_null(json);
    case SW_JSON_END:
    default:
        return json->status == SW_OK && fail_expected(json, "a value");
    }
}

bool sw_json_finish(sw_json *json)
{
    if (json->status != SW_OK)
        return false;
    skip_white(json);
    return json->at == json->end || fail_expected(json, "the end of the text");
}
