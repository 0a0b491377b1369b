/*
 * Strict pull reader of JSON (RFC 8259): one pass, no tree, bounded depth, strings decoded on demand into a
 * caller's arena. Used for safetensors headers, index files and plan files. Refuses: bad UTF-8, unpaired
 * surrogates, control characters in strings, trailing bytes (other than white space), nesting above
 * SW_JSON_MAX_DEPTH. Duplicate keys are for the caller to find (it knows the names).
 */
#ifndef SW_IO_JSON_READ_H
#define SW_IO_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "shardwright/error.h"

enum { SW_JSON_MAX_DEPTH = 64 };

typedef enum sw_json_kind {
    SW_JSON_END = 0, /* end of the object or array just being read, or of the document */
    SW_JSON_OBJECT,
    SW_JSON_ARRAY,
    SW_JSON_STRING,
    SW_JSON_NUMBER,
    SW_JSON_TRUE,
    SW_JSON_FALSE,
    SW_JSON_NULL
} sw_json_kind;

typedef struct sw_json_text {
    const char *bytes; /* inside the input when there was no escape, else in the arena; not NUL-ended */
    size_t length;
} sw_json_text;

typedef struct sw_json {
    const char *start;
    const char *at;
    const char *end;
    const char *source; /* name for messages: a path */
    sw_arena *arena;    /* for strings with escapes */
    sw_error *err;      /* where failures are written; may be NULL */
    sw_status status;   /* sticky: after a failure every call returns END / false */
    uint32_t depth;
    bool is_first; /* no element of the current container was read yet */
} sw_json;

void sw_json_init(sw_json *json, const void *bytes, size_t n_bytes, const char *source, sw_arena *arena,
                  sw_error *err);

/* Kind of the value that stands next, nothing consumed. */
sw_json_kind sw_json_peek(sw_json *json);

/* Enter the object or array that stands next; false (and a failure) when something else does. */
bool sw_json_enter_object(sw_json *json);
bool sw_json_enter_array(sw_json *json);

/* Next key of the current object, the value stands next; false at its end (consumed) or on failure. */
bool sw_json_next_key(sw_json *json, sw_json_text *key);

/* Whether another element of the current array stands next; false at its end (consumed) or on failure. */
bool sw_json_next_element(sw_json *json);

bool sw_json_string(sw_json *json, sw_json_text *out);
bool sw_json_raw_string(sw_json *json, sw_json_text *raw); /* checked, its escapes still in it */
bool sw_json_u64(sw_json *json, uint64_t *out); /* a non-negative integer without fraction or exponent */
bool sw_json_i64(sw_json *json, int64_t *out);
bool sw_json_bool(sw_json *json, bool *out);
bool sw_json_null(sw_json *json);
bool sw_json_skip(sw_json *json);   /* any value */
bool sw_json_finish(sw_json *json); /* nothing but white space is left */

/* A copy of a raw string in `arena`, its escapes decoded. SW_E_NO_MEMORY; SW_E_FORMAT: the bytes are not
 * those that were checked. */
sw_status sw_json_decode(sw_json_text raw, sw_json_text *out, sw_arena *arena, const char *source,
                         sw_error *err);

/* Raise SW_E_FORMAT "SOURCE: byte N: ..." at the current place; returns false. */
bool sw_json_fail(sw_json *json, const char *help, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool sw_json_text_is(sw_json_text text, const char *word);

#endif
