/* Small whole numbers as elements of any dtype, exact in all of them up to 256. */
#ifndef SW_TEST_NUMBERS_H
#define SW_TEST_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "shardwright/model.h"

/* Write and read element `i` of an array. */
void number_put(void *array, size_t i, sw_dtype dtype, double value);
double number_get(const void *array, size_t i, sw_dtype dtype);

#endif
