/* Files of tokens (train/tokens.h). */
#include "train/tokens.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "io/npy.h"

enum { U16_VOCABULARY = 1 << 16, TEXT_VOCABULARY = 256, LEAST_TO_DOUBT = 16 };

static const char *const names[] = {
    [SW_TOKENS_U16] = "u16", [SW_TOKENS_U32] = "u32", [SW_TOKENS_NPY] = "npy", [SW_TOKENS_TEXT] = "text"};

const char *sw_token_format_name(sw_token_format format)
{
    return (size_t)format < SW_COUNT(names) ? names[format] : NULL;
}

sw_token_format sw_token_format_of(const char *name)
{
    for (size_t i = SW_TOKENS_GUESSED + 1; i < SW_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return (sw_token_format)i;
    }
    return SW_TOKENS_GUESSED;
}

/* ---- elements ---- */

/* One element as it is; i64 and i32 may be negative. */
static int64_t element(const sw_tokens *tokens, uint64_t i)
{
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    int32_t i32 = 0;
    int64_t i64 = 0;

    switch (tokens->dtype) {
    case SW_DTYPE_U8:
        return tokens->first[i];
    case SW_DTYPE_U16:
        memcpy(&u16, tokens->first + i * sizeof u16, sizeof u16);
        return u16;
    case SW_DTYPE_U32:
        memcpy(&u32, tokens->first + i * sizeof u32, sizeof u32);
        return u32;
    case SW_DTYPE_I32:
        memcpy(&i32, tokens->first + i * sizeof i32, sizeof i32);
        return i32;
    default:
        memcpy(&i64, tokens->first + i * sizeof i64, sizeof i64);
        return i64;
    }
}

void sw_tokens_read(const sw_tokens *tokens, uint64_t first, uint64_t n, int32_t *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = (int32_t)element(tokens, first + i);
}

/* ---- opening ---- */

static sw_token_format guess(sw_file_map map, uint64_t vocabulary)
{
    if (sw_npy_is(map))
        return SW_TOKENS_NPY;
    return vocabulary <= U16_VOCABULARY ? SW_TOKENS_U16 : SW_TOKENS_U32;
}

static sw_status take_npy(sw_tokens *tokens, const char *path, sw_error *err)
{
    sw_npy npy = {0};

    SW_TRY(sw_npy_read(&npy, tokens->map, path, err));
    tokens->first = tokens->map.bytes + npy.data_begin;
    tokens->n_tokens = npy.elems;
    tokens->dtype = npy.dtype;
    return SW_OK;
}

static sw_status take_bare(sw_tokens *tokens, sw_dtype dtype, const char *path, sw_error *err)
{
    size_t width = sw_dtype_bits(dtype) / 8;

    if (tokens->map.n_bytes % width != 0)
        return SW_FAIL(err, SW_E_FORMAT, "it was cut, or has another --token-type",
                       "%s: %zu bytes are no whole number of %s tokens", path, tokens->map.n_bytes,
                       sw_dtype_name(dtype));
    tokens->first = tokens->map.bytes;
    tokens->n_tokens = tokens->map.n_bytes / width;
    tokens->dtype = dtype;
    return SW_OK;
}

/* Small numbers of 32 bits, read as 16, have a zero after each: no text looks like that. */
static sw_status doubt_guess(const sw_tokens *tokens, const char *path, sw_error *err)
{
    bool is_doubtful = tokens->n_tokens >= LEAST_TO_DOUBT && tokens->n_tokens % 2 == 0;

    for (uint64_t i = 1; i < tokens->n_tokens && is_doubtful; i += 2)
        is_doubtful = element(tokens, i) == 0;
    if (!is_doubtful)
        return SW_OK;
    return SW_FAIL(err, SW_E_FORMAT, "say --token-type u32, or u16 if it is right",
                   "%s: every second token would be 0: these seem to be tokens of 32 bits", path);
}

static sw_status check_tokens(const sw_tokens *tokens, const char *path, uint64_t vocabulary, sw_error *err)
{
    if (tokens->n_tokens == 0)
        return SW_FAIL(err, SW_E_FORMAT, "give a file with tokens in it", "%s: no tokens", path);
    for (uint64_t i = 0; i < tokens->n_tokens; i++) {
        int64_t token = element(tokens, i);
        if (token < 0 || (uint64_t)token >= vocabulary || token > INT32_MAX)
            return SW_FAIL(err, SW_E_FORMAT, "make the file with the tokenizer of this model",
                           "%s: token %" PRIu64 " is %" PRId64 ", the vocabulary has %" PRIu64, path, i,
                           token, vocabulary);
    }
    return SW_OK;
}

static sw_status read_map(sw_tokens *tokens, const char *path, sw_token_format format, uint64_t vocabulary,
                          sw_error *err)
{
    bool is_guessed = format == SW_TOKENS_GUESSED;

    if (is_guessed)
        format = guess(tokens->map, vocabulary);
    switch (format) {
    case SW_TOKENS_NPY:
        SW_TRY(take_npy(tokens, path, err));
        break;
    case SW_TOKENS_TEXT:
        if (vocabulary < TEXT_VOCABULARY)
            return SW_FAIL(err, SW_E_FORMAT, "give tokens, made with the tokenizer of this model",
                           "%s: bytes as tokens need a vocabulary of %d, this one has %" PRIu64, path,
                           TEXT_VOCABULARY, vocabulary);
        SW_TRY(take_bare(tokens, SW_DTYPE_U8, path, err));
        break;
    default:
        SW_TRY(take_bare(tokens, format == SW_TOKENS_U32 ? SW_DTYPE_U32 : SW_DTYPE_U16, path, err));
        if (is_guessed && format == SW_TOKENS_U16)
            SW_TRY(doubt_guess(tokens, path, err));
    }
    return check_tokens(tokens, path, vocabulary, err);
}

sw_status sw_tokens_open(sw_tokens *out, const char *path, sw_token_format format, uint64_t vocabulary,
                         sw_error *err)
{
    sw_tokens tokens = {0};

    SW_TRY(sw_file_map_open(&tokens.map, path, UINT64_MAX, err));
    sw_status status = read_map(&tokens, path, format, vocabulary, err);
    if (status != SW_OK) {
        sw_tokens_close(&tokens);
        return status;
    }
    *out = tokens;
    return SW_OK;
}

void sw_tokens_close(sw_tokens *tokens)
{
    sw_file_map_close(&tokens->map);
    *tokens = (sw_tokens){0};
}
