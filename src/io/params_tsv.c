/*
 * params.tsv, the model as a list (format: io/params_tsv.h). Strict: a line that is not three fields is an
 * error with its number, never skipped.
 */
#include "io/params_tsv.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "base/text.h"

/* Where we are, for messages. */
typedef struct place {
    const char *path;
    uint64_t line;
} place;

typedef struct field {
    const char *bytes;
    size_t length;
} field;

static int shown(field text)
{
    return text.length < 60 ? (int)text.length : 60;
}

/* "AxB" into extents; the text is not empty. */
static sw_status read_shape(field text, uint64_t *dims, uint32_t *n_dims, const place *where, sw_error *err)
{
    const char *at = text.bytes;
    const char *end = text.bytes + text.length;

    *n_dims = 0;
    for (;; at++) {
        const char *first = at;
        uint64_t extent = 0;
        bool fits = true;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            fits =
                fits && sw_mul_u64(extent, 10, &extent) && sw_add_u64(extent, (uint64_t)(*at - '0'), &extent);
        }
        bool is_number = at > first && (*first != '0' || at == first + 1);
        if (!is_number || !fits || (at < end && *at != 'x')) {
            return SW_FAIL(err, SW_E_FORMAT, "write extents as 4096x1024, a scalar as 1",
                           "%s: line %" PRIu64 ": '%.*s' is not a shape", where->path, where->line,
                           shown(text), text.bytes);
        }
        if (*n_dims == SW_MAX_DIMS) {
            return SW_FAIL(err, SW_E_LIMIT, "the shape is damaged", "%s: line %" PRIu64 ": more than %d dims",
                           where->path, where->line, SW_MAX_DIMS);
        }
        dims[(*n_dims)++] = extent;
        if (at == end)
            return SW_OK;
    }
}

/* Cut the line at its tabs; the number of fields, of which the first three are kept. */
static size_t split_fields(const char *line, const char *end, field fields[3])
{
    size_t n_fields = 0;

    for (;;) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        const char *stop = tab == NULL ? end : tab;
        if (n_fields < 3)
            fields[n_fields] = (field){line, (size_t)(stop - line)};
        n_fields++;
        if (tab == NULL)
            return n_fields;
        line = tab + 1;
    }
}

static sw_status read_line(sw_tensor_list *list, const char *line, const char *end, const place *where,
                           sw_error *err)
{
    field fields[3] = {0};
    uint64_t dims[SW_MAX_DIMS];
    uint32_t n_dims = 0;
    const sw_shape *shape = NULL;

    size_t n_fields = split_fields(line, end, fields);
    if (n_fields != 3) {
        return SW_FAIL(err, SW_E_FORMAT, "a line is NAME, DTYPE and SHAPE with one tab between",
                       "%s: line %" PRIu64 ": %zu fields, not 3", where->path, where->line, n_fields);
    }
    sw_map_prefetch(&list->by_name, fields[0].bytes, fields[0].length);
    sw_dtype dtype = sw_dtype_of(fields[1].bytes, fields[1].length);
    if (dtype == SW_DTYPE_UNKNOWN) {
        return SW_FAIL(err, SW_E_FORMAT, "write a dtype of the safetensors format, such as BF16",
                       "%s: line %" PRIu64 ": '%.*s' is not a dtype", where->path, where->line,
                       shown(fields[1]), fields[1].bytes);
    }
    SW_TRY(read_shape(fields[2], dims, &n_dims, where, err));
    sw_status status = sw_tensor_list_shape(list, dims, n_dims, &shape, err);
    if (status == SW_OK) {
        status =
            sw_tensor_list_add(list, fields[0].bytes, fields[0].length, dtype, shape, UINT32_MAX, 0, err);
    }
    if (status != SW_OK)
        sw_error_context(err, "%s: line %" PRIu64, where->path, where->line);
    return status;
}

static size_t count_lines(const char *at, const char *end)
{
    size_t n_lines = 0;

    for (; at != NULL && at < end; n_lines++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at == NULL ? NULL : at + 1;
    }
    return n_lines;
}

sw_status sw_params_tsv_read(sw_tensor_list *list, sw_file_map map, const char *path, sw_error *err)
{
    const char *at = (const char *)map.bytes;
    const char *end = at + map.n_bytes;
    place where = {.path = path};

    if (map.n_bytes > SW_PARAMS_TSV_MAX_BYTES) {
        return SW_FAIL(err, SW_E_LIMIT, "check that this is a list of parameters",
                       "%s: %zu bytes, at most %d are read", path, map.n_bytes, SW_PARAMS_TSV_MAX_BYTES);
    }
    SW_TRY(sw_tensor_list_reserve(list, count_lines(at, end), err));
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        const char *next = newline == NULL ? end : newline + 1;
        if (stop > at && stop[-1] == '\r')
            stop--;
        const char *from = where.line++ == 0 ? at + sw_utf8_mark(at, (size_t)(stop - at)) : at;
        if (from == end)
            break; /* a mark and nothing else */
        if (*from != '#')
            SW_TRY(read_line(list, from, stop, &where, err));
        at = next;
    }
    return SW_OK;
}
