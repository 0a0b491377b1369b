/*
 * Sums of BF16 and F16 that are not made in one go (comm/combine.h does those): they are F32 while values are
 * added, and rounded once at the end.
 */
#ifndef SW_DTENSOR_SHORT_SUM_H
#define SW_DTENSOR_SHORT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

/* Is it BF16 or F16? The others here are for these. */
bool sw_is_short_float(sw_dtype dtype);

void sw_short_add(sw_dtype dtype, float *sums, const uint16_t *values, size_t n);
void sw_short_round(sw_dtype dtype, uint16_t *out, const float *sums, size_t n);

#endif
