/* Floats of a file, which are at no particular alignment, as floats of another width in memory. */
#ifndef SW_KERNEL_READ_FLOATS_H
#define SW_KERNEL_READ_FLOATS_H

#include <stdbool.h>

#include "kernel/kernel.h"
#include "shardwright/model.h"

/* Can elements of `from` be read as `to`: the same, or from any float to F32 and F64? */
bool sw_can_read_floats(sw_dtype from, sw_dtype to);

/* `n` of them, for which it is so. */
void sw_kernel_read_floats(const sw_kernel *kernel, sw_dtype from, const void *bytes, sw_dtype to, void *out,
                           uint64_t n);

#endif
