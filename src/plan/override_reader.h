/*
 * Reading of override files: what the parts of the reader (entries, layouts, role rules) share. A mapping is
 * read by a table of its keys; whatever is not in the table is refused with the nearest key that is. Messages
 * begin with FILE:LINE and the key of the outermost mapping that is being read.
 */
#ifndef SW_PLAN_OVERRIDE_READER_H
#define SW_PLAN_OVERRIDE_READER_H

#include "io/yaml.h"
#include "plan/override_entry.h"

typedef struct sw_reader {
    sw_overrides *into; /* a draft of the caller's list, thrown away when the file has a fault */
    const char *path;
    const char *field; /* key in front of messages, or NULL */
    sw_error *err;
} sw_reader;

/* Read the value of one key into `slot`. */
typedef sw_status sw_reader_take_fn(sw_reader *r, const sw_yaml_node *value, void *slot);

typedef struct sw_reader_key {
    const char *key;
    sw_reader_take_fn *take;
    size_t offset; /* of the slot, from the base */
} sw_reader_key;

enum { SW_READER_MAX_KEYS = 24 }; /* of one table */

/* Read a mapping: each child by its row. */
sw_status sw_reader_mapping(sw_reader *r, const sw_yaml_node *mapping, const sw_reader_key *keys,
                            size_t n_keys, void *base);

/* Raise SW_E_FORMAT: "FILE:LINE: field: what". */
sw_status sw_reader_fail(const sw_reader *r, const sw_yaml_node *at, const char *help, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));

/* Raise "unknown KIND 'WORD'": the help names the nearest of `words`, or all of them when none is near. */
sw_status sw_reader_unknown(const sw_reader *r, const sw_yaml_node *at, const char *kind, const char *word,
                            const char *const *words, size_t n_words);

/* No room left: SW_E_LIMIT or SW_E_NO_MEMORY. */
sw_status sw_reader_no_room(const sw_reader *r);

/* A text that is a name, copied; `kind` stands for it in messages ("match", "pattern"). */
sw_status sw_reader_name(const sw_reader *r, const sw_yaml_node *at, const char *kind, const char *text,
                         const char **out);

/* A list of at most `most` different names, ended by NULL. */
sw_status sw_reader_names(const sw_reader *r, const sw_yaml_node *list, const char *kind, uint32_t most,
                          const char ***out, uint32_t *n_out);

/* A whole number from `least` to `most`. */
sw_status sw_reader_number(const sw_reader *r, const sw_yaml_node *value, int64_t least, int64_t most,
                           int64_t *out);

/* `layout:` of an entry; `slot` is the sw_override_entry. */
sw_status sw_reader_layout(sw_reader *r, const sw_yaml_node *value, void *slot);

/* `roles:` and `arch_roles:` of the document, into r->into. */
sw_status sw_reader_roles(sw_reader *r, const sw_yaml_node *value, void *slot);
sw_status sw_reader_arch_roles(sw_reader *r, const sw_yaml_node *value, void *slot);

#endif
