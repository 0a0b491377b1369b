/*
 * Combining what several ranks hold: element by element, in the order of the ranks, so that everybody who
 * does it gets the same bits. BF16 and F16 are added in F32 and rounded once. Integers wrap around; a maximum
 * with NaN is NaN.
 */
#ifndef SW_COMM_COMBINE_H
#define SW_COMM_COMBINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

typedef enum sw_combine_op { SW_COMBINE_SUM = 0, SW_COMBINE_MAX, SW_COMBINE_OP_COUNT_ } sw_combine_op;

/* Is there such a combination of elements of this dtype? Numbers of whole bytes; BOOL has a maximum only. */
bool sw_can_combine(sw_dtype dtype, sw_combine_op op);

/*
 * out[i] = parts[0][i] op parts[1][i] ..., for `n` elements of `n_parts` >= 1 parts. `out` may be one of the
 * parts. The combination must be possible.
 */
void sw_combine(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                sw_combine_op op);

/*
 * The same in two goes, of parts that do not come together: what the first go makes are elements of this
 * width, F32 for sums of BF16 and F16, and the parts of the second.
 */
uint32_t sw_combine_width(sw_dtype dtype, sw_combine_op op);
void sw_combine_begin(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                      sw_combine_op op);
void sw_combine_end(void *out, const void *const *parts, uint32_t n_parts, size_t n, sw_dtype dtype,
                    sw_combine_op op);

#endif
