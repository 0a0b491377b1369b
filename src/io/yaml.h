/*
 * A small YAML tree read with libyaml: mappings, sequences, scalars, each with its line. Refused: anchors and
 * aliases, tags, several documents, duplicate keys, non-scalar keys, nesting above SW_YAML_MAX_DEPTH, files
 * above SW_YAML_MAX_BYTES.
 */
#ifndef SW_IO_YAML_H
#define SW_IO_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/file.h"
#include "shardwright/error.h"

enum { SW_YAML_MAX_DEPTH = 32, SW_YAML_MAX_BYTES = 4 << 20 };

typedef enum sw_yaml_kind { SW_YAML_SCALAR = 0, SW_YAML_SEQUENCE, SW_YAML_MAPPING } sw_yaml_kind;

typedef struct sw_yaml_node sw_yaml_node;
struct sw_yaml_node {
    sw_yaml_kind kind;
    uint32_t line;          /* counted from 1 */
    bool is_plain;          /* a scalar without quotes: null, true, 3 mean what they look like */
    const char *text;       /* a scalar's value, NUL-ended; "" otherwise */
    const char *key;        /* name of this node in its mapping; NULL in a sequence or at the root */
    sw_yaml_node *children; /* first child, in file order */
    sw_yaml_node *next;     /* next sibling */
    size_t n_children;
};

/* Read a document. *out is NULL for an empty one. Everything lives in `arena`. */
sw_status sw_yaml_read(sw_yaml_node **out, sw_file_map map, const char *path, sw_arena *arena, sw_error *err);

/* Child of a mapping by key, or NULL. */
const sw_yaml_node *sw_yaml_get(const sw_yaml_node *mapping, const char *key);

/* Plain null, ~ or nothing at all. */
bool sw_yaml_is_null(const sw_yaml_node *node);

/* true/false (yes/no are not booleans). Returns false when the scalar is neither. */
bool sw_yaml_bool(const sw_yaml_node *node, bool *out);

#endif
