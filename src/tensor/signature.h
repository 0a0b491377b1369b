/*
 * What goes into an operation and what comes out, as a text in its row of the table:
 *
 *     x:*i weight~:oi bias?:o -> y:*o
 *
 * Every value has a name and its dims as letters; the same letter is the same extent everywhere. `*` stands
 * for any number of leading dims, the same for all values that have it. A letter of the output that no input
 * has is an extent given with the call. A capital letter is a dim that may not be cut over ranks. h' is a
 * divisor of the extent h, each of whose rows serves a group of neighbouring rows of h.
 *
 * Marks behind a name: `?` may be left out; `~` a weight, which may be stored in a short float; `#` whole
 * numbers (I64); `!` a constant, which has no gradient.
 */
#ifndef SW_TENSOR_SIGNATURE_H
#define SW_TENSOR_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "shardwright/error.h"
#include "tensor/tensor.h"

enum {
    SW_MAX_INPUTS = 8,
    SW_MAX_OUTPUTS = 3,
    SW_MAX_VALUES = SW_MAX_INPUTS + SW_MAX_OUTPUTS,
    SW_MAX_LETTERS = 12
};

typedef struct sw_value {
    const char *name; /* not ended: `name_length` */
    int name_length;
    bool has_rest; /* begins with `*` */
    bool is_optional;
    bool is_weight;
    bool is_whole_number;
    bool is_constant;
    uint32_t n_letters;
    uint8_t letters[SW_TENSOR_MAX_DIMS]; /* indices into the signature's */
} sw_value;

typedef struct sw_signature {
    uint32_t n_inputs;
    uint32_t n_outputs;
    sw_value values[SW_MAX_VALUES]; /* inputs, then outputs */
    uint32_t n_letters;
    char letters[SW_MAX_LETTERS];
    bool is_divisor[SW_MAX_LETTERS]; /* of the letter before it */
} sw_signature;

/* Extents of a call: by letter, and the leading dims. */
typedef struct sw_extents {
    bool is_known[SW_MAX_LETTERS];
    uint64_t extent[SW_MAX_LETTERS];
    bool knows_rest;
    uint32_t n_rest;
    uint64_t rest[SW_TENSOR_MAX_DIMS];
} sw_extents;

/* A row's text; false for one that breaks the rules above, which is a fault of the table. */
bool sw_signature_parse(sw_signature *out, const char *text);

/* The value of this name (not ended: `length`), inputs and outputs; -1: none. */
int sw_signature_find(const sw_signature *signature, const char *name, size_t length);

/* The index among a value's dims of a letter, as if it had no leading dims; -1: it does not have it. */
int sw_value_dim_of(const sw_value *value, uint32_t letter);

/* The dim of a whole number of rows (h of h', else the letter itself) that a letter is cut with. */
uint32_t sw_signature_base(const sw_signature *signature, uint32_t letter);

/* Extents by the shape of input `i`, added to those of inputs before; SW_E_ARGUMENT where they differ. */
sw_status sw_extents_add(sw_extents *extents, const sw_signature *signature, uint32_t i, uint32_t n_dims,
                         const uint64_t *dims, sw_error *err);

/* Dims of output `i`; letters that are not known are `given`. SW_E_LIMIT: more than five. */
sw_status sw_extents_output(const sw_extents *extents, const sw_signature *signature, uint32_t i,
                            uint64_t given, uint32_t *n_dims, uint64_t *dims, sw_error *err);

#endif
