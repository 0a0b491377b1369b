/*
 * Rows taken from a table and added to it by number: embeddings, and tokens on their way to experts and back.
 * Dims: R rows taken, N rows of the table, C width. A number outside 0 .. N-1 gives zeros and adds nothing:
 * padding, or a part of the vocabulary that is on another rank.
 */
#ifndef SW_KERNEL_ROWS_H
#define SW_KERNEL_ROWS_H

#include "kernel/kernel.h"

typedef struct sw_gather_args {
    size_t n_rows;
    size_t n_table;
    size_t width;
    sw_dtype table_type; /* of a gather: F32, BF16 or F16 with F32 rows; else as the rows */
    int64_t first;       /* the number of the table's row 0 */
    const int32_t *ids;  /* [R] */
    const void *weights; /* scatter: [R] factors of the rows, or NULL */
    const void *table;   /* gather: [N, C] */
    void *sums;          /* scatter: [N, C], added to */
    void *out;           /* gather: [R, C] */
    const void *rows;    /* scatter: [R, C] */
} sw_gather_args;

/* out[r] = table[ids[r]] */
void sw_kernel_gather(const sw_kernel *kernel, sw_dtype dtype, const sw_gather_args *args);
/* sums[ids[r]] += weights[r] * rows[r], r ascending whatever the number of threads */
void sw_kernel_scatter_add(const sw_kernel *kernel, sw_dtype dtype, const sw_gather_args *args);

/*
 * The `count` largest of each row, largest first; of equal ones the lower index first. NaN counts as -inf.
 * A correction is added for the choice alone: values are without it. With groups, equal stretches of a row,
 * only the `n_kept` best groups are looked at, each by the sum of its one or two (`group_best`) largest.
 * `count` is at most the width of what is looked at.
 */
typedef struct sw_top_k_args {
    size_t n_rows;
    size_t width;
    size_t count;
    size_t n_groups; /* divides the width; 0 or 1: none */
    size_t n_kept;
    size_t group_best;
    const void *x;          /* [R, C] */
    const void *correction; /* [C] or NULL */
    int32_t *indices;       /* [R, count] */
    void *values;           /* [R, count] or NULL */
} sw_top_k_args;

void sw_kernel_top_k(const sw_kernel *kernel, sw_dtype dtype, const sw_top_k_args *args);

/*
 * Numbers 0 .. n_values - 1 sorted by counting, equal ones in the order in which they stand: order[i] is
 * where the i-th of them stands, ends[v] how many are at most v. `numbers` is read, all are below n_values.
 */
void sw_kernel_sort(const int32_t *numbers, size_t n, size_t n_values, int32_t *order, int32_t *ends);

#endif
