/*
 * What the readers of a plan file's parts share: objects read by a table of their keys, words of closed
 * lists, names interned once. A failure sticks in `json.status`; every function returns false from then on.
 */
#ifndef SW_PLAN_PLAN_READER_H
#define SW_PLAN_PLAN_READER_H

#include <stddef.h>

#include "io/json_read.h"
#include "plan/plan_data.h"

/* A text that stands in the file many times: kept once. */
typedef struct sw_plan_name {
    const char *text;
    uint32_t length;
    uint32_t object; /* the last object that had it as a key: how duplicates are found */
    uint32_t spec;   /* 1 + the last boundary that holds a parameter of this path ... */
    uint32_t param;  /* ... and which one it is there */
} sw_plan_name;

typedef struct sw_plan_reader {
    sw_json json;
    sw_plan *plan;
    sw_error *err;
    sw_map by_name; /* text → index into names */
    sw_plan_name *names;
    uint32_t n_names;
    uint32_t names_capacity;
    sw_map by_text;        /* JSON of a parameter's facts → index of the facts */
    uint32_t n_objects;    /* objects with interned keys begun so far */
    uint32_t n_segments;   /* of cuts so far */
    uint64_t n_params;     /* parameters and sources of stacks so far */
    bool has_format;       /* the file says that it is a plan */
    sw_json_text boundary; /* where we are, for messages; no bytes: nowhere */
    sw_json_text param;
    const char *roles[SW_ROLE_COUNT_];
    const char *dtypes[SW_DTYPE_COUNT_];
    const char *types[SW_BOUNDARY_COUNT_];
    const char *layouts[SW_LAYOUT_COUNT_];
    const char *collectives[SW_COLL_COUNT_];
    const char *axes[SW_AXIS_COUNT_];
    const char **uncovered;
    uint32_t n_uncovered;
} sw_plan_reader;

/* Read the value that stands next into `at`. */
typedef bool sw_plan_read_fn(sw_plan_reader *r, void *at);

/* One key of an object: its value goes `offset` bytes into the record. */
typedef struct sw_plan_key {
    const char *name;
    bool is_required;
    sw_plan_read_fn *read;
    size_t offset;
} sw_plan_key;

/* Rows of a table of keys: the value of a field, or one that the function puts into the record by itself. */
#define SW_KEY(name, read, record, field)                                                                    \
    {                                                                                                        \
        name, true, read, offsetof(record, field)                                                            \
    }
#define SW_KEY_OPTIONAL(name, read, record, field)                                                           \
    {                                                                                                        \
        name, false, read, offsetof(record, field)                                                           \
    }
#define SW_KEY_OF_ALL(name, read)                                                                            \
    {                                                                                                        \
        name, true, read, 0                                                                                  \
    }
#define SW_KEY_OF_ALL_OPTIONAL(name, read)                                                                   \
    {                                                                                                        \
        name, false, read, 0                                                                                 \
    }

void sw_plan_reader_init(sw_plan_reader *r);
void sw_plan_reader_clear(sw_plan_reader *r);

/* Raise SW_E_FORMAT at the current place, with the boundary and the parameter in front. Returns false. */
bool sw_plan_refuse(sw_plan_reader *r, const char *help, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool sw_plan_no_memory(sw_plan_reader *r);
bool sw_plan_over_limit(sw_plan_reader *r, const char *what, uint32_t most); /* SW_E_LIMIT */

/* An object of known keys, each at most once; `what` names it in messages. At most 32 keys. */
bool sw_plan_read_object(sw_plan_reader *r, const char *what, const sw_plan_key *keys, size_t n_keys,
                         void *into);

/* Elements of an array, appended to *items (of the plan's arena), *n counted up. At most `most`. */
typedef struct sw_plan_list {
    void **items;
    uint32_t *n;
    size_t item_bytes;
    uint32_t most;
} sw_plan_list;

bool sw_plan_read_list(sw_plan_reader *r, const char *what, sw_plan_list list, sw_plan_read_fn *read);

/* Members of an object whose keys are names. The item's first field is its name, a const char *. */
bool sw_plan_read_members(sw_plan_reader *r, const char *what, sw_plan_list list, sw_plan_read_fn *read);

/* An array of two values, each read by `read`; `what` and `meaning` name it and them in a refusal. */
bool sw_plan_read_two(sw_plan_reader *r, const char *what, const char *meaning, sw_plan_read_fn *read,
                      void *first, void *second);

/* The index of a word in a closed list; `what` is "role", ... The nearest word is named in a refusal. */
bool sw_plan_read_word(sw_plan_reader *r, const char *what, const char *const *words, size_t n_words,
                       uint32_t *out);

/* Refuses a name that is empty, too long, or has control characters. */
bool sw_plan_check_name(sw_plan_reader *r, sw_json_text text);

/* Index of the interned name; UINT32_MAX after a failure. */
uint32_t sw_plan_name_of(sw_plan_reader *r, sw_json_text text);

/* The parameter of this path in boundary `spec`, or UINT32_MAX. */
uint32_t sw_plan_param_at(const sw_plan_reader *r, uint32_t spec, const char *path);

/* Simple values; `at` is the field. */
bool sw_plan_read_bool(sw_plan_reader *r, void *at); /* bool */
bool sw_plan_read_u32(sw_plan_reader *r, void *at);  /* uint32_t */
bool sw_plan_read_i32(sw_plan_reader *r, void *at);  /* int32_t */
bool sw_plan_read_u64(sw_plan_reader *r, void *at);  /* uint64_t */
bool sw_plan_read_i64(sw_plan_reader *r, void *at);  /* int64_t */
bool sw_plan_read_name(sw_plan_reader *r, void *at); /* const char *: interned name */
bool sw_plan_read_text(sw_plan_reader *r, void *at); /* const char *: any text without NUL */
bool sw_plan_read_axis(sw_plan_reader *r, void *at); /* sw_axis */
bool sw_plan_read_io_places(sw_plan_reader *r,
                            sw_places *places);        /* of an input or output: no composed cuts */
bool sw_plan_read_places(sw_plan_reader *r, void *at); /* sw_places */

/* plan_read_facts.c: the index of a parameter's facts (uint32_t). */
bool sw_plan_read_facts(sw_plan_reader *r, void *at);

/* plan_read_spec.c: all boundaries, into the plan. */
bool sw_plan_read_boundaries(sw_plan_reader *r, void *unused);

static inline int sw_plan_shown(sw_json_text text)
{
    return text.length < 100 ? (int)text.length : 100;
}

#endif
