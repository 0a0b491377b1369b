/*
 * The list of tensors that every reader fills. Names are checked here, once for all formats: unique, valid
 * UTF-8 without control characters, bounded. Invariant: by_name has exactly one entry a tensor and its key is
 * the name in the arena; a failed call leaves the list as it was.
 */
#include "io/tensor_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "base/text.h"

enum { DELETE = 0x7f };

sw_status sw_tensor_list_init(sw_tensor_list *list, size_t limit_bytes, sw_error *err)
{
    *list = (sw_tensor_list){.arena = sw_arena_create(limit_bytes)};
    if (list->arena == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a list of tensors");
    return SW_OK;
}

void sw_tensor_list_clear(sw_tensor_list *list)
{
    sw_map_clear(&list->by_name);
    sw_map_clear(&list->by_shape);
    sw_free(list->tensors);
    sw_free(list->files);
    sw_free(list->shapes);
    sw_arena_destroy(list->arena);
    *list = (sw_tensor_list){0};
}

/* Room for one more item. Grows by half: the last doubling of a large list would be most of its memory. */
static bool grow(void **items, size_t *capacity, size_t used, size_t item_bytes)
{
    if (used < *capacity)
        return true;
    size_t wanted = used < 16 ? 16 : used + used / 2;
    void *grown = sw_realloc(*items, wanted * item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

static bool grow_u32(void **items, uint32_t *capacity, uint32_t used, size_t item_bytes)
{
    size_t wide = *capacity;
    bool is_grown = grow(items, &wide, used, item_bytes);
    *capacity = (uint32_t)wide;
    return is_grown;
}

sw_status sw_tensor_list_reserve(sw_tensor_list *list, size_t n_more, sw_error *err)
{
    if (n_more > SW_MAX_TENSORS - list->n_tensors)
        n_more = SW_MAX_TENSORS - list->n_tensors;
    size_t wanted = list->n_tensors + n_more;
    if (wanted > list->capacity) {
        sw_tensor_entry *tensors = sw_realloc(list->tensors, wanted * sizeof *tensors);
        if (tensors == NULL)
            return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu tensors", wanted);
        list->tensors = tensors;
        list->capacity = wanted;
    }
    if (!sw_map_reserve(&list->by_name, wanted))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu names", wanted);
    return SW_OK;
}

/* A new shape in the arena, not yet known to the list. */
static sw_status make_shape(sw_tensor_list *list, const uint64_t *dims, uint32_t n_dims, sw_shape **out,
                            sw_error *err)
{
    uint64_t elems = 1;

    for (uint32_t i = 0; i < n_dims; i++) {
        if (!sw_mul_u64(elems, dims[i], &elems)) {
            return SW_FAIL(err, SW_E_LIMIT, "the shape is damaged",
                           "the product of the extents does not fit 64 bits (dim %" PRIu32 " is %" PRIu64 ")",
                           i, dims[i]);
        }
    }
    sw_shape *shape = sw_arena_alloc(list->arena, sizeof *shape + n_dims * sizeof dims[0]);
    if (shape == NULL)
        return sw_arena_fail(list->arena, "the list of tensors", err);
    shape->n_dims = n_dims;
    shape->elems = elems;
    if (n_dims > 0)
        memcpy(shape->dims, dims, n_dims * sizeof dims[0]);
    *out = shape;
    return SW_OK;
}

sw_status sw_tensor_list_shape(sw_tensor_list *list, const uint64_t *dims, uint32_t n_dims,
                               const sw_shape **out, sw_error *err)
{
    size_t n_bytes = n_dims * sizeof dims[0];
    sw_shape *shape = NULL;
    bool is_new = false;

    if (n_dims > SW_MAX_DIMS) {
        return SW_FAIL(err, SW_E_LIMIT, "the shape is damaged", "%" PRIu32 " dims, at most %d are supported",
                       n_dims, SW_MAX_DIMS);
    }
    const uint32_t *known = sw_map_find(&list->by_shape, dims, n_bytes);
    if (known != NULL) {
        *out = list->shapes[*known];
        return SW_OK;
    }
    if (list->n_shapes >= SW_MAX_SHAPES)
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a model", "more than %d different shapes",
                       SW_MAX_SHAPES);
    SW_TRY(make_shape(list, dims, n_dims, &shape, err));
    if (!grow_u32((void **)&list->shapes, &list->shape_capacity, list->n_shapes, sizeof(sw_shape *)) ||
        sw_map_put(&list->by_shape, shape->dims, n_bytes, list->n_shapes, &is_new) == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %" PRIu32 " shapes", list->n_shapes + 1);
    list->shapes[list->n_shapes++] = shape;
    *out = shape;
    return SW_OK;
}

static sw_status check_name(const char *name, size_t length, sw_error *err)
{
    if (length == 0)
        return SW_FAIL(err, SW_E_FORMAT, "name the tensor", "a tensor has an empty name");
    if (length > SW_MAX_NAME_BYTES) {
        return SW_FAIL(err, SW_E_LIMIT, "rename the tensor",
                       "the name '%.60s...' has %zu bytes, at most %d are supported", name, length,
                       SW_MAX_NAME_BYTES);
    }
    if (name[length - 1] == '.')
        return SW_FAIL(err, SW_E_FORMAT, "rename the tensor",
                       "the name '%.*s' ends in a dot: the parameter itself has none",
                       length < 200 ? (int)length : 200, name);
    if (sw_text_plain_prefix(name, length) == length && memchr(name, DELETE, length) == NULL)
        return SW_OK;
    int shown = (int)(length < 200 ? length : 200);
    if (sw_text_printable_prefix(name, length) != length)
        return SW_FAIL(err, SW_E_FORMAT, "rename the tensor", "the name '%.*s' has control characters", shown,
                       name);
    if (sw_utf8_valid_prefix(name, length) != length)
        return SW_FAIL(err, SW_E_FORMAT, "rename the tensor", "the name '%.*s' is not UTF-8", shown, name);
    return SW_OK;
}

static sw_status fail_twice(const sw_tensor_list *list, const sw_tensor_entry *first, uint32_t file,
                            sw_error *err)
{
    if (file < list->n_files && first->file < list->n_files && file != first->file) {
        return SW_FAIL(err, SW_E_FORMAT, "remove the stale file; each tensor belongs in one",
                       "tensor '%.150s' stands in %.120s and in %.120s", first->name,
                       list->files[first->file], list->files[file]);
    }
    if (file < list->n_files) {
        return SW_FAIL(err, SW_E_FORMAT, "each name may stand once", "tensor '%.200s' stands twice in %.200s",
                       first->name, list->files[file]);
    }
    return SW_FAIL(err, SW_E_FORMAT, "each name may stand once", "tensor '%.200s' is listed twice",
                   first->name);
}

sw_status sw_tensor_list_add(sw_tensor_list *list, const char *name, size_t name_length, sw_dtype dtype,
                             const sw_shape *shape, uint32_t file, uint64_t begin, sw_error *err)
{
    bool is_new = false;

    SW_TRY(check_name(name, name_length, err));
    if (list->n_tensors >= SW_MAX_TENSORS)
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a model", "more than %d tensors", SW_MAX_TENSORS);
    if (!grow((void **)&list->tensors, &list->capacity, list->n_tensors, sizeof(sw_tensor_entry)))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu tensors", list->n_tensors + 1);
    /* Copied before it is known to be new: then the insertion is the last step that can fail. */
    char *copy = sw_arena_copy(list->arena, name, name_length);
    if (copy == NULL)
        return sw_arena_fail(list->arena, "the names of the tensors", err);
    const uint32_t *index = sw_map_put(&list->by_name, copy, name_length, (uint32_t)list->n_tensors, &is_new);
    if (index == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for %zu names", list->n_tensors + 1);
    if (!is_new)
        return fail_twice(list, &list->tensors[*index], file, err);

    list->tensors[list->n_tensors++] = (sw_tensor_entry){
        .name = copy,
        .shape = shape,
        .name_length = (uint32_t)name_length & 0xffffffU, /* at most SW_MAX_NAME_BYTES */
        .file = file,
        .begin = begin,
        .dtype = (unsigned)dtype & 0xffU,
    };
    return SW_OK;
}

sw_status sw_tensor_list_note_unknown(sw_tensor_list *list, const char *word, size_t length, sw_error *err)
{
    enum { SHOWN = 40 };
    sw_unknown_dtype *unknown = &list->unknown;

    if (unknown->n++ > 0)
        return SW_OK;
    unknown->name = list->tensors[list->n_tensors - 1].name;
    unknown->word = sw_arena_copy(list->arena, word, length < SHOWN ? length : SHOWN);
    return unknown->word == NULL ? SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for a list of tensors")
                                 : SW_OK;
}

bool sw_tensor_list_has_file(const sw_tensor_list *list, const char *path)
{
    for (uint32_t f = 0; f < list->n_files; f++) {
        if (strcmp(list->files[f], path) == 0)
            return true;
    }
    return false;
}

sw_status sw_tensor_list_add_file(sw_tensor_list *list, const char *path, uint32_t *out, sw_error *err)
{
    if (!grow_u32((void **)&list->files, &list->file_capacity, list->n_files, sizeof(char *)))
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the path %s", path);
    char *copy = sw_arena_copy(list->arena, path, strlen(path));
    if (copy == NULL)
        return sw_arena_fail(list->arena, "the paths of the files", err);
    list->files[list->n_files] = copy;
    *out = list->n_files++;
    return SW_OK;
}

sw_tensor_entry *sw_tensor_list_find(const sw_tensor_list *list, const char *name, size_t name_length)
{
    const uint32_t *index = sw_map_find(&list->by_name, name, name_length);
    return index == NULL ? NULL : &list->tensors[*index];
}
