/*
 * A kernel under test as one row: what goes in, what comes out, how to run it forward and backward. From the
 * row follow the three tests that every kernel has: each variant against the reference, the same bits for any
 * number of threads, and the backward against central differences of the forward in F64.
 *
 * Sizes of arrays are letters: M rows * columns, R rows, C columns, T rows * half of the columns.
 */
#ifndef SW_TEST_KERNEL_OP_H
#define SW_TEST_KERNEL_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen.h"
#include "kernel/kernel.h"

enum { OP_ARRAYS = 6 };

typedef struct op_case {
    size_t rows;
    size_t columns;
    uint32_t flags;        /* random bits, for the row to read as it likes */
    void *in[OP_ARRAYS];   /* inputs, of the type under test */
    void *out[OP_ARRAYS];  /* forward: outputs; the first is the one that is differentiated */
    const void *d_out;     /* backward: gradient of the first output */
    void *d_in[OP_ARRAYS]; /* backward: gradients of the inputs that have one */
} op_case;

typedef void op_run(const sw_kernel *kernel, sw_dtype dtype, const op_case *c);

typedef struct kernel_op {
    const char *name;
    const char *inputs;  /* "MC": a letter an input */
    const char *outputs; /* "MR" */
    size_t n_gradients;  /* of the first inputs; 0 with no backward */
    op_run *forward;
    op_run *backward; /* reads in, out (of a forward before) and d_out, writes d_in */
    size_t least;     /* columns for which numbers are compared: with fewer the gradient is rounding alone */
    size_t multiple;  /* columns are one of it; 0: any number */
} kernel_op;

/* What the variant of `kernel` gives, against the reference; false with a line on stderr when too far off. */
bool op_equals_reference(const kernel_op *op, gen *g);
/* Bits with 1, 2 and 3 threads. */
bool op_ignores_threads(const kernel_op *op, gen *g);
/* The backward in F64 against differences; small shapes. */
bool op_gradient_is_right(const kernel_op *op, gen *g);

/* A context of n threads; the test fails if there is none. Destroy it. */
sw_kernel *kernel_of(sw_kernel_variant variant, uint32_t n_threads);

/* Random values: mostly within 3 of 0, some within 30. */
double gen_value(gen *g);
void gen_fill(gen *g, sw_dtype dtype, void *values, size_t n);

/* The furthest that two arrays are apart, over the largest of the second (at least `floor`); NaN is NaN. */
double largest_error(sw_dtype dtype, const void *got, const void *expected, size_t n, double floor);

/* Memory for n elements with a guard behind it, at an address that is no multiple of a vector. */
void *guarded_alloc(sw_dtype dtype, size_t n);
bool guarded_free(void *memory, sw_dtype dtype, size_t n); /* false: the guard was written */

#endif
