/*
 * Stores and targets made by hand, to test the copy engine without a plan: tensors whose elements hold their
 * own index, split by lists of rows. What a part must hold is computed here element by element, from the
 * lists of rows alone; it shares nothing with the engine's ranges.
 */
#ifndef SW_TEST_COPY_CASE_H
#define SW_TEST_COPY_CASE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "checkpoint/copy.h"

enum { CASE_DIMS = 4, CASE_FILES = 96, CASE_PARTS = 256, CASE_TENSORS = 8 };

/* The rows of each part along one dim, ascending. A row may stand in several parts, or in none. */
typedef struct case_dim {
    uint32_t n_parts;
    uint32_t *n_rows; /* by part */
    uint32_t **rows;  /* by part */
} case_dim;

/* A tensor split: cells are the product of the parts of all dims, the last dim fastest. */
typedef struct case_split {
    uint32_t n_dims;
    case_dim dims[CASE_DIMS];
} case_split;

typedef struct copy_case {
    sw_arena *arena;
    sw_store store;
    sw_target target;
    sw_buffer header; /* of case_header() */
    int fd;           /* one file without a name has the bytes of all the store's files */
    uint64_t n_bytes; /* of it */
} copy_case;

void case_open(copy_case *c);
void case_close(copy_case *c);

/* A split of these extents into one cell; then cut a dim into chunks, or give its parts' rows one by one. */
case_split *case_whole(copy_case *c, const uint64_t *dims, uint32_t n_dims);
void case_chunks(copy_case *c, case_split *split, uint32_t dim, uint32_t n_parts);
void case_no_rows(copy_case *c, case_split *split, uint32_t dim, uint32_t n_parts);
void case_add_row(copy_case *c, case_split *split, uint32_t dim, uint32_t part, uint32_t row);

uint32_t case_cells(const case_split *split);

/* Bytes of a cell as they must be, in memory of the case. `bits` of an element: a multiple of 8, or 4. */
uint8_t *case_bytes(copy_case *c, const uint64_t *dims, const case_split *split, uint32_t cell, uint32_t bits,
                    uint64_t *n_bytes);

/* The cell as a part. */
sw_part case_part(copy_case *c, const case_split *split, uint32_t cell);

/* A tensor of the store, one new file a cell. bits 0: those of the dtype. */
uint32_t case_add_tensor(copy_case *c, const char *name, const char *dtype, uint32_t bits,
                         const uint64_t *dims, const case_split *split);

/* One more stored part of the last tensor, in a new file, with these bytes. */
sw_store_part *case_add_part(copy_case *c, sw_part part, const uint8_t *bytes, uint64_t n_bytes);

/* What a stored part is said to hold from now on. */
void case_hold(copy_case *c, sw_store_part *stored, sw_part part, bool is_replica);

/* The bytes of a part of a tensor, in order, in the pieces in which the engine gives them to `sink`. Where
 * the file of rank `pick` has a copy it is taken; UINT32_MAX: the owners'. */
sw_status case_walk(const sw_store *store, const sw_store_tensor *tensor, const sw_part *part, uint32_t pick,
                    sw_sink_fn *sink, void *user, sw_error *err);

/* A file of the target, empty; then stored tensors in it, one after the other. */
void case_add_file(copy_case *c, const char *name);
sw_target_part *case_want(copy_case *c, uint32_t tensor, sw_part part, uint64_t n_bytes);

/* The header of a file of the target, until the next call. */
const sw_buffer *case_header(copy_case *c, uint32_t file);

#endif
