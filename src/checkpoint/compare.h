/*
 * Comparing a stored part, byte for byte, with what another tensor holds in the same place: the tensor of
 * another checkpoint (diff, verify --against), or the owners of the same one (copies). Differences are
 * counted by elements, and the first is kept with its index in the whole tensor.
 */
#ifndef SW_CHECKPOINT_COMPARE_H
#define SW_CHECKPOINT_COMPARE_H

#include "checkpoint/copy_fill.h"
#include "checkpoint/source.h"

enum { SW_MISMATCH_BYTES = 8, SW_INDEX_TEXT = 256 };

/* How two of them differ. All zero: they do not. */
typedef struct sw_mismatch {
    uint64_t n_elements; /* that differ */
    uint64_t first;      /* of them, row-major in the whole tensor; UINT64_MAX: not to be told */
    uint32_t n_bytes;    /* of the element, as it lies in both; 0: not to be shown */
    uint8_t left[SW_MISMATCH_BYTES];
    uint8_t right[SW_MISMATCH_BYTES];
} sw_mismatch;

/* One a thread. */
typedef struct sw_comparer {
    sw_source left;
    sw_copy_filler right;
    uint8_t *buffer;
} sw_comparer;

/* Sets of open files that one has. */
enum { SW_COMPARER_SETS = 2 };

/* Stores are borrowed until clear; they may be the same. n_slots is of sw_file_slots(). */
sw_status sw_comparer_init(sw_comparer *comparer, const sw_store *left, const sw_store *right,
                           uint32_t n_slots, sw_error *err);
void sw_comparer_clear(sw_comparer *comparer);

/* What was read on both sides so far. */
uint64_t sw_comparer_bytes(const sw_comparer *comparer);

/*
 * Compare `left`, a tensor of the left store, with `right`, one of the right store with the same dtype and
 * shape: every element once, by its owners on both sides. What is missing on the left is passed over. *out is
 * added to. SW_E_FORMAT, SW_E_IO, SW_E_NO_MEMORY.
 */
sw_status sw_compare_tensor(sw_comparer *comparer, const sw_store_tensor *left, const sw_store_tensor *right,
                            sw_mismatch *out, sw_error *err);

/* Compare one part of `left`, be it a copy, with the owners' of `right`. */
sw_status sw_compare_part(sw_comparer *comparer, const sw_store_tensor *left, const sw_store_part *part,
                          const sw_store_tensor *right, sw_mismatch *out, sw_error *err);

/* "[3,17]" of a row-major index; "[]" of a scalar. */
const char *sw_index_text(char text[SW_INDEX_TEXT], const sw_shape *shape, uint64_t index);

/* "5 of 4096 elements differ, first at [3,17]: 0x3fc0 (1.5), 0x3fc1 (1.508)" */
enum { SW_MISMATCH_TEXT = 480 };
const char *sw_mismatch_text(char text[SW_MISMATCH_TEXT], const sw_mismatch *mismatch,
                             const sw_store_tensor *tensor);

#endif
