/*
 * What every source of a model delivers: a list of tensors by name. Names and shapes live in the list's
 * arena; names are NUL-ended and unique (a repeat is an error of the reader). 150 bytes a tensor beyond its
 * name is the budget of the whole planner, so a record is small and shapes are shared.
 */
#ifndef SW_IO_TENSOR_LIST_H
#define SW_IO_TENSOR_LIST_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "shardwright/error.h"
#include "shardwright/model.h"

/* Several times what the largest model needs; they bound what hostile input can take
 * (docs/reference/inputs.md).
 */
enum {
    SW_MAX_DIMS = 8,
    SW_MAX_NAME_BYTES = 65536,
    SW_MAX_TENSORS = 1000000,
    SW_MAX_SHAPES = 20000,           /* different ones */
    SW_TENSOR_LIST_BYTES = 128 << 20 /* names and shapes of one list */
};

typedef struct sw_shape {
    uint32_t n_dims;
    uint64_t elems; /* product of the extents, 1 for a scalar */
    uint64_t dims[];
} sw_shape;

typedef struct sw_tensor_entry {
    const char *name;
    const sw_shape *shape; /* shared between equal shapes; NULL when only an index was read */
    uint64_t begin;        /* first byte, from the start of the file's data section */
    uint32_t file;         /* index into `files`, UINT32_MAX when of no file */
    unsigned name_length : 24;
    unsigned dtype : 8; /* sw_dtype */
} sw_tensor_entry;

/* Tensors whose dtype is a word that no one knows: they can be carried, and not be cut inside a row. */
typedef struct sw_unknown_dtype {
    const char *name; /* of the first tensor; NULL: there is none */
    const char *word; /* its dtype, the beginning of a long one */
    size_t n;
} sw_unknown_dtype;

typedef struct sw_tensor_list {
    sw_arena *arena;
    sw_tensor_entry *tensors; /* in the order in which they were read */
    size_t n_tensors;
    size_t capacity;
    const char **files; /* paths as given, in the arena */
    uint32_t n_files;
    uint32_t file_capacity;
    sw_map by_name;  /* name → index */
    sw_map by_shape; /* bytes of a shape → index into shapes */
    const sw_shape **shapes;
    uint32_t n_shapes;
    uint32_t shape_capacity;
    sw_unknown_dtype unknown;
} sw_tensor_list;

/* An empty list whose memory is bounded by `limit_bytes`; clear it with sw_tensor_list_clear(). */
sw_status sw_tensor_list_init(sw_tensor_list *list, size_t limit_bytes, sw_error *err);
void sw_tensor_list_clear(sw_tensor_list *list);

/* Make room for `n_more` tensors at once: a hint, so that a reader that can guess does not grow step by step.
 */
sw_status sw_tensor_list_reserve(sw_tensor_list *list, size_t n_more, sw_error *err);

/* The shared shape for these extents. SW_E_LIMIT: too many dims or shapes, or a product that
 * overflows. */
sw_status sw_tensor_list_shape(sw_tensor_list *list, const uint64_t *dims, uint32_t n_dims,
                               const sw_shape **out, sw_error *err);

/*
 * Append a tensor; the name is copied. SW_E_FORMAT: the name is there already (both files are named), or is
 * empty, not UTF-8, or has control characters. SW_E_LIMIT: longer than SW_MAX_NAME_BYTES, or one too many.
 */
sw_status sw_tensor_list_add(sw_tensor_list *list, const char *name, size_t name_length, sw_dtype dtype,
                             const sw_shape *shape, uint32_t file, uint64_t begin, sw_error *err);

/* Remember that the tensor that was added last has the dtype `word`, which is not known. */
sw_status sw_tensor_list_note_unknown(sw_tensor_list *list, const char *word, size_t length, sw_error *err);

/* Register a file path; its index is used in entries. */
sw_status sw_tensor_list_add_file(sw_tensor_list *list, const char *path, uint32_t *out, sw_error *err);

/* Is a file of this path registered? Looks at all of them. */
bool sw_tensor_list_has_file(const sw_tensor_list *list, const char *path);

/* The tensor of that name, or NULL. */
sw_tensor_entry *sw_tensor_list_find(const sw_tensor_list *list, const char *name, size_t name_length);

/* dtype of a format's word ("BF16"); SW_DTYPE_UNKNOWN for others. */
sw_dtype sw_dtype_of(const char *word, size_t length);

#endif
