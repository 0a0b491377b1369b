/*
 * .npy headers (io/npy.h): the magic, a version, the length of a text, and the text
 * {'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), } with blanks and a line end behind it.
 */
#include "io/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"

static const char magic[] = "\x93NUMPY";

enum { MAGIC_BYTES = 6, SHOWN = 40 };

typedef struct descr_row {
    const char *word;
    sw_dtype dtype;
} descr_row;

// clang-format off
static const descr_row descrs[] = {
    { "<u2", SW_DTYPE_U16 },
    { "<u4", SW_DTYPE_U32 },
    { "<i4", SW_DTYPE_I32 },
    { "<i8", SW_DTYPE_I64 },
};
// clang-format on

/* The text while it is read. */
typedef struct reader {
    const char *begin;
    const char *at;
    const char *end;
    const char *path;
    sw_error *err;
} reader;

static sw_status refuse_for(const reader *r, const char *help, const char *what)
{
    return SW_FAIL(r->err, SW_E_FORMAT, help, "%s: byte %td of the header: %s", r->path, r->at - r->begin,
                   what);
}

static sw_status refuse(const reader *r, const char *what)
{
    return refuse_for(r, "write it with numpy.save()", what);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

/* Is this the next word, after blanks? Then it is behind us. */
static bool take(reader *r, const char *word)
{
    size_t n = strlen(word);

    skip_blanks(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* A text in quotes, without escapes. */
static sw_status take_text(reader *r, const char **text, size_t *length)
{
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return refuse(r, "a text in quotes was expected");
    char quote = *r->at++;
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (close == NULL)
        return refuse(r, "a text without its closing quote");
    *text = r->at;
    *length = (size_t)(close - r->at);
    r->at = close + 1;
    return SW_OK;
}

static sw_status take_number(reader *r, uint64_t *out)
{
    const char *first = NULL;
    bool fits = true;

    skip_blanks(r);
    *out = 0;
    for (first = r->at; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        fits = fits && sw_mul_u64(*out, 10, out) && sw_add_u64(*out, (uint64_t)(*r->at - '0'), out);
    if (r->at == first)
        return refuse(r, "a number was expected");
    return fits ? SW_OK : refuse(r, "a number beyond 64 bits");
}

/* ---- the three values ---- */

static sw_status take_descr(reader *r, sw_npy *out)
{
    const char *word = NULL;
    size_t length = 0;

    SW_TRY(take_text(r, &word, &length));
    for (size_t i = 0; i < SW_COUNT(descrs); i++) {
        if (length == strlen(descrs[i].word) && memcmp(word, descrs[i].word, length) == 0) {
            out->dtype = descrs[i].dtype;
            return SW_OK;
        }
    }
    return SW_FAIL(r->err, SW_E_FORMAT, "convert it: array.astype('<u2') or '<u4', '<i4', '<i8'",
                   "%s: elements of type '%.*s', not u16, u32, i32 or i64 of little end first", r->path,
                   (int)(length < SHOWN ? length : SHOWN), word);
}

static sw_status take_order(reader *r, bool *is_fortran)
{
    *is_fortran = take(r, "True");
    return *is_fortran || take(r, "False") ? SW_OK : refuse(r, "True or False was expected");
}

static const char one_dim[] = "write array.reshape(-1) of it"; /* numpy.save() may well have written it */

static sw_status take_shape(reader *r, sw_npy *out)
{
    if (!take(r, "("))
        return refuse(r, "a shape such as (12,) was expected");
    out->elems = 1;
    while (!take(r, ")")) {
        if (out->n_dims == SW_NPY_MAX_DIMS)
            return refuse_for(r, one_dim, "a shape of more than two dims");
        uint64_t extent = 0;
        SW_TRY(take_number(r, &extent));
        if (!sw_mul_u64(out->elems, extent, &out->elems))
            return refuse(r, "a shape of more than 2^64 elements");
        out->dims[out->n_dims++] = extent;
        if (!take(r, ",") && (r->at == r->end || *r->at != ')'))
            return refuse(r, "a comma or the end of the shape was expected");
    }
    return out->n_dims > 0 ? SW_OK : refuse_for(r, one_dim, "a shape without dims");
}

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, ALL_KEYS = 7 };

static uint32_t key_of(const char *word, size_t length)
{
    static const char *const words[] = {"descr", "fortran_order", "shape"};

    for (uint32_t i = 0; i < SW_COUNT(words); i++) {
        if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0)
            return 1U << i;
    }
    return 0;
}

static sw_status take_entry(reader *r, uint32_t *seen, sw_npy *out, bool *is_fortran)
{
    const char *word = NULL;
    size_t length = 0;

    SW_TRY(take_text(r, &word, &length));
    uint32_t key = key_of(word, length);
    if (key == 0 || (*seen & key) != 0)
        return refuse(r, key == 0 ? "a key other than descr, fortran_order and shape"
                                  : "a key that stands twice");
    *seen |= key;
    if (!take(r, ":"))
        return refuse(r, "a colon was expected");
    if (key == KEY_DESCR)
        return take_descr(r, out);
    return key == KEY_ORDER ? take_order(r, is_fortran) : take_shape(r, out);
}

static sw_status read_text(reader *r, sw_npy *out)
{
    uint32_t seen = 0;
    bool is_fortran = false;

    if (!take(r, "{"))
        return refuse(r, "'{' was expected");
    while (!take(r, "}")) {
        SW_TRY(take_entry(r, &seen, out, &is_fortran));
        skip_blanks(r);
        if (!take(r, ",") && (r->at == r->end || *r->at != '}'))
            return refuse(r, "a comma or '}' was expected");
    }
    skip_blanks(r);
    if (seen != ALL_KEYS)
        return refuse(r, "descr, fortran_order or shape is missing");
    if (r->at != r->end && !(r->end - r->at == 1 && *r->at == '\n'))
        return refuse(r, "something stands behind it");
    if (is_fortran && out->n_dims > 1)
        return SW_FAIL(r->err, SW_E_FORMAT, "write numpy.ascontiguousarray() of it",
                       "%s: stored column by column (fortran_order)", r->path);
    return SW_OK;
}

/* ---- the file ---- */

bool sw_npy_is(sw_file_map map)
{
    return map.n_bytes >= MAGIC_BYTES && memcmp(map.bytes, magic, MAGIC_BYTES) == 0;
}

/* Where the text begins and ends: its length has 2 bytes in version 1 and 4 in versions 2 and 3. */
static sw_status find_text(sw_file_map map, const char *path, size_t *begin, size_t *end, sw_error *err)
{
    size_t n_length = 2;

    if (!sw_npy_is(map) || map.n_bytes < MAGIC_BYTES + 2)
        return SW_FAIL(err, SW_E_FORMAT, "write it with numpy.save()", "%s: is no .npy file", path);
    uint8_t version = map.bytes[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return SW_FAIL(err, SW_E_FORMAT, "write it with numpy.save()",
                       "%s: .npy of version %u, not 1, 2 or 3", path, version);
    n_length = version == 1 ? 2 : 4;
    *begin = MAGIC_BYTES + 2 + n_length;
    if (map.n_bytes < *begin)
        return SW_FAIL(err, SW_E_FORMAT, "copy it again", "%s: ends inside its header", path);
    uint64_t length = 0;
    for (size_t i = n_length; i > 0; i--)
        length = length << 8 | map.bytes[MAGIC_BYTES + 1 + i];
    if (length > SW_NPY_MAX_HEADER)
        return SW_FAIL(err, SW_E_LIMIT, "", "%s: a header of %" PRIu64 " bytes, at most %d are read", path,
                       length, SW_NPY_MAX_HEADER);
    if (length > map.n_bytes - *begin)
        return SW_FAIL(err, SW_E_FORMAT, "copy it again", "%s: ends inside its header", path);
    *end = *begin + (size_t)length;
    return SW_OK;
}

sw_status sw_npy_read(sw_npy *out, sw_file_map map, const char *path, sw_error *err)
{
    size_t begin = 0;
    size_t end = 0;
    uint64_t need = 0;
    sw_npy npy = {0};

    SW_TRY(find_text(map, path, &begin, &end, err));
    reader r = {(const char *)map.bytes + begin, (const char *)map.bytes + begin,
                (const char *)map.bytes + end, path, err};
    SW_TRY(read_text(&r, &npy));
    uint64_t have = map.n_bytes - end;
    uint32_t width = sw_dtype_bits(npy.dtype) / 8;
    if (!sw_mul_u64(npy.elems, width, &need) || need != have)
        return SW_FAIL(err, SW_E_FORMAT, "copy it again",
                       "%s: %" PRIu64 " bytes of data, its shape has %" PRIu64 " elements of %" PRIu32, path,
                       have, npy.elems, width);
    npy.data_begin = end;
    *out = npy;
    return SW_OK;
}
