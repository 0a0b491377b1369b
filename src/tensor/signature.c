/* Reading signatures, and extents by them (tensor/signature.h). */
#include "tensor/signature.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/status.h"

static int letter_index(sw_signature *s, char letter, bool is_divisor)
{
    for (uint32_t i = 0; i < s->n_letters; i++) {
        if (s->letters[i] == letter && s->is_divisor[i] == is_divisor)
            return (int)i;
    }
    if (s->n_letters == SW_MAX_LETTERS)
        return -1;
    s->letters[s->n_letters] = letter;
    s->is_divisor[s->n_letters] = is_divisor;
    return (int)s->n_letters++;
}

static bool set_mark(sw_value *value, char mark)
{
    // clang-format off
    switch (mark) {
    case '?': value->is_optional = true; return true;
    case '~': value->is_weight = true; return true;
    case '#': value->is_whole_number = true; return true;
    case '!': value->is_constant = true; return true;
    default: return false;
    }
    // clang-format on
}

/* NAME MARKS : LETTERS */
static bool parse_value(sw_signature *s, sw_value *value, const char *text, size_t length)
{
    size_t at = 0;

    while (at < length && (islower((unsigned char)text[at]) || text[at] == '_'))
        at++;
    *value = (sw_value){.name = text, .name_length = (int)at};
    while (at < length && set_mark(value, text[at]))
        at++;
    if (value->name_length == 0 || at == length || text[at++] != ':')
        return false;
    if (at < length && text[at] == '*') {
        value->has_rest = true;
        at++;
    }
    while (at < length) {
        char name = text[at++];
        bool is_divisor = at < length && text[at] == '\'';
        at += is_divisor;
        int letter = isalpha((unsigned char)name) ? letter_index(s, name, is_divisor) : -1;
        if (letter < 0 || value->n_letters == SW_TENSOR_MAX_DIMS)
            return false;
        value->letters[value->n_letters++] = (uint8_t)letter;
    }
    return true;
}

bool sw_signature_parse(sw_signature *out, const char *text)
{
    bool is_output = false;

    *out = (sw_signature){0};
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (length == 2 && strncmp(text, "->", 2) == 0) {
            is_output = true;
        } else {
            uint32_t *n = is_output ? &out->n_outputs : &out->n_inputs;
            uint32_t most = is_output ? SW_MAX_OUTPUTS : SW_MAX_INPUTS;
            sw_value *value = &out->values[out->n_inputs + out->n_outputs];
            if (*n == most || !parse_value(out, value, text, length))
                return false;
            (*n)++;
        }
        text += length;
        text += strspn(text, " ");
    }
    return out->n_inputs > 0 && out->n_outputs > 0;
}

int sw_signature_find(const sw_signature *signature, const char *name, size_t length)
{
    for (uint32_t i = 0; i < signature->n_inputs + signature->n_outputs; i++) {
        const sw_value *value = &signature->values[i];
        if ((size_t)value->name_length == length && strncmp(value->name, name, length) == 0)
            return (int)i;
    }
    return -1;
}

uint32_t sw_signature_base(const sw_signature *signature, uint32_t letter)
{
    for (uint32_t i = 0; i < signature->n_letters && signature->is_divisor[letter]; i++) {
        if (signature->letters[i] == signature->letters[letter] && !signature->is_divisor[i])
            return i;
    }
    return letter;
}

int sw_value_dim_of(const sw_value *value, uint32_t letter)
{
    for (uint32_t i = 0; i < value->n_letters; i++) {
        if (value->letters[i] == letter)
            return (int)i;
    }
    return -1;
}

static sw_status refuse(const sw_value *value, uint32_t n_dims, const uint64_t *dims, uint32_t dim,
                        uint64_t expected, sw_error *err)
{
    char shape[SW_SHAPE_TEXT];

    sw_shape_text(n_dims, dims, shape);
    return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes",
                   "%.*s is %s, its dim %" PRIu32 " must be %" PRIu64 " as in the inputs before it",
                   value->name_length, value->name, shape, dim, expected);
}

static sw_status refuse_dims(const sw_value *value, uint32_t n_dims, const uint64_t *dims, const char *least,
                             uint32_t expected, sw_error *err)
{
    char shape[SW_SHAPE_TEXT];

    sw_shape_text(n_dims, dims, shape);
    return SW_FAIL(err, SW_E_ARGUMENT, "check the shapes", "%.*s is %s, but has %s%" PRIu32 " dims",
                   value->name_length, value->name, shape, least, expected);
}

static sw_status refuse_divisor(const sw_value *value, uint32_t n_dims, const uint64_t *dims, uint32_t dim,
                                uint64_t whole, sw_error *err)
{
    char shape[SW_SHAPE_TEXT];

    sw_shape_text(n_dims, dims, shape);
    return SW_FAIL(err, SW_E_ARGUMENT, "check the sizes",
                   "%.*s is %s, its dim %" PRIu32 " must divide the %" PRIu64 " of the inputs before it",
                   value->name_length, value->name, shape, dim, whole);
}

sw_status sw_extents_add(sw_extents *extents, const sw_signature *signature, uint32_t i, uint32_t n_dims,
                         const uint64_t *dims, sw_error *err)
{
    const sw_value *value = &signature->values[i];
    uint32_t n_rest = n_dims - value->n_letters;

    if (n_dims < value->n_letters)
        return refuse_dims(value, n_dims, dims, "at least ", value->n_letters, err);
    if (!value->has_rest && n_rest > 0)
        return refuse_dims(value, n_dims, dims, "", value->n_letters, err);
    if (value->has_rest && extents->knows_rest && n_rest != extents->n_rest)
        return refuse_dims(value, n_dims, dims, "", extents->n_rest + value->n_letters, err);
    for (uint32_t d = 0; d < n_rest; d++) {
        if (extents->knows_rest && dims[d] != extents->rest[d])
            return refuse(value, n_dims, dims, d, extents->rest[d], err);
        extents->rest[d] = dims[d];
    }
    if (value->has_rest) {
        extents->knows_rest = true;
        extents->n_rest = n_rest;
    }
    for (uint32_t d = 0; d < value->n_letters; d++) {
        uint32_t letter = value->letters[d];
        uint32_t base = sw_signature_base(signature, letter);
        if (base != letter && (dims[n_rest + d] == 0 ? extents->extent[base] != 0
                                                     : extents->extent[base] % dims[n_rest + d] != 0))
            return refuse_divisor(value, n_dims, dims, n_rest + d, extents->extent[base], err);
        if (extents->is_known[letter] && dims[n_rest + d] != extents->extent[letter])
            return refuse(value, n_dims, dims, n_rest + d, extents->extent[letter], err);
        extents->is_known[letter] = true;
        extents->extent[letter] = dims[n_rest + d];
    }
    return SW_OK;
}

sw_status sw_extents_output(const sw_extents *extents, const sw_signature *signature, uint32_t i,
                            uint64_t given, uint32_t *n_dims, uint64_t *dims, sw_error *err)
{
    const sw_value *value = &signature->values[signature->n_inputs + i];
    uint32_t n_rest = value->has_rest ? extents->n_rest : 0;

    if (n_rest + value->n_letters > SW_TENSOR_MAX_DIMS) {
        return SW_FAIL(err, SW_E_LIMIT, "put dims together",
                       "%.*s would have %" PRIu32 " dims, a tensor has at most %d", value->name_length,
                       value->name, n_rest + value->n_letters, (int)SW_TENSOR_MAX_DIMS);
    }
    for (uint32_t d = 0; d < n_rest; d++)
        dims[d] = extents->rest[d];
    for (uint32_t d = 0; d < value->n_letters; d++) {
        uint32_t letter = value->letters[d];
        dims[n_rest + d] = extents->is_known[letter] ? extents->extent[letter] : given;
    }
    *n_dims = n_rest + value->n_letters;
    return SW_OK;
}
