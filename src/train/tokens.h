/*
 * Files of tokens, mapped and checked once: every token is of the vocabulary, so that nobody asks again.
 * Which format a file has follows from what the caller says, else from the file: one that begins as .npy is
 * read as such; others hold bare little-endian numbers, u16 for a vocabulary of up to 65,536 and u32 beyond.
 */
#ifndef SW_TRAIN_TOKENS_H
#define SW_TRAIN_TOKENS_H

#include "base/file.h"
#include "shardwright/model.h"

typedef enum sw_token_format {
    SW_TOKENS_GUESSED = 0,
    SW_TOKENS_U16,
    SW_TOKENS_U32,
    SW_TOKENS_NPY,
    SW_TOKENS_TEXT, /* a byte is a token: for a vocabulary of 256 at least */
    SW_TOKENS_FORMAT_COUNT_
} sw_token_format;

/* "u16", "u32", "npy", "text"; NULL: no such format. SW_TOKENS_GUESSED: there is none of that name. */
const char *sw_token_format_name(sw_token_format format);
sw_token_format sw_token_format_of(const char *name);

typedef struct sw_tokens {
    sw_file_map map;
    const uint8_t *first; /* at no particular alignment */
    uint64_t n_tokens;
    sw_dtype dtype;
} sw_tokens; /* all zero is none */

/*
 * SW_E_FORMAT: no tokens, part of one at the end, one that the vocabulary does not have (with its place), or
 * a guess that the file speaks against. SW_E_IO.
 */
sw_status sw_tokens_open(sw_tokens *out, const char *path, sw_token_format format, uint64_t vocabulary,
                         sw_error *err);
void sw_tokens_close(sw_tokens *tokens);

/* Tokens first .. first + n - 1, which are there. */
void sw_tokens_read(const sw_tokens *tokens, uint64_t first, uint64_t n, int32_t *out);

#endif
