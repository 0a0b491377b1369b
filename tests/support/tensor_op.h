/*
 * Every operation of the table as a row for tests: how to call it, and which sizes and numbers it takes.
 * Shapes come from its signature: a case chooses an extent for each letter.
 */
#ifndef SW_TEST_TENSOR_OP_H
#define SW_TEST_TENSOR_OP_H

#include "gen.h"
#include "tensor/operation.h"
#include "tensor/operations.h"

typedef struct tensor_case {
    uint64_t extent[128]; /* by letter; of h' (a divisor) by its capital */
    uint32_t n_rest;
    uint64_t rest[SW_TENSOR_MAX_DIMS];
    uint32_t flags; /* random bits, for the row to read as it likes */
    int64_t first;  /* of an embedding's part */
} tensor_case;

typedef sw_tensor *tensor_op_run(sw_step *step, const sw_tensor *const *in, const tensor_case *c);

typedef struct tensor_op {
    sw_op op;
    tensor_op_run *run;
    /* Of the inputs of whole numbers, in order: the letter of the extent that they are below, `i` for the
     * index in the last dim, `^` for ends of runs of N rows. */
    const char *numbers;
    void (*fit)(tensor_case *c); /* make random extents possible; may be NULL */
    uint32_t positive;           /* bits of inputs that have no negative elements */
} tensor_op;

enum { TENSOR_OPS = SW_OP_COUNT_ - 1 }; /* all but custom */
extern const tensor_op tensor_ops[TENSOR_OPS];

const sw_signature *tensor_op_signature(const tensor_op *op);

/* Extents 1 .. most. */
tensor_case tensor_case_of(const tensor_op *op, gen *g, uint32_t most);

/* Dims of input `i`. */
uint32_t tensor_op_dims(const tensor_op *op, const tensor_case *c, uint32_t i, uint64_t *dims);

/* Random F64, or I32 as `numbers` says, for `n` elements of input `i`, whose last dim is `last`. */
void tensor_op_fill(const tensor_op *op, const tensor_case *c, uint32_t i, gen *g, void *values, uint64_t n,
                    uint64_t last);

/* All inputs without gaps in the type F64 or F32, on the stack, those that have a gradient with one; optional
 * ones are left out if `is_bare`. */
void tensor_op_inputs(const tensor_op *op, const tensor_case *c, sw_dtype dtype, sw_stack *stack, gen *g,
                      bool is_bare, sw_tensor **in);

#endif
