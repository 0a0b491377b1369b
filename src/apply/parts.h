/* This rank's elements of a parameter among all: what is read of a whole one, and where a part stands. */
#ifndef SW_APPLY_PARTS_H
#define SW_APPLY_PARTS_H

#include "apply/applied.h"

/* The elements at `at` of a tensor that is laid out so, with elements of `width` bytes. SW_E_NO_MEMORY. */
sw_status sw_layout_take(const sw_tensor_layout *layout, sw_grid_coord at, const void *whole, size_t width,
                         void *part, sw_error *err);

/*
 * Copy this rank's part out of a whole parameter, row-major with elements of `width` bytes, or its part into
 * one. SW_E_NO_MEMORY.
 */
sw_status sw_part_take(const sw_applied_parameter *p, const void *whole, size_t width, void *part,
                       sw_error *err);
sw_status sw_part_put(const sw_applied_parameter *p, void *whole, size_t width, const void *part,
                      sw_error *err);

#endif
