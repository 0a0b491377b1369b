/*
 * Functions of single numbers, for what is computed once: the math library is used in this folder only. And
 * the tables of the rotary embedding (kernel/rotary.h), which are made of them.
 */
#ifndef SW_KERNEL_SCALAR_H
#define SW_KERNEL_SCALAR_H

#include <stddef.h>

#include "shardwright/model.h"

double sw_square_root(double x);
double sw_power(double base, double exponent);
double sw_logarithm(double x); /* to the base e */

/*
 * cos[p, j] = scale * cos(p * frequencies[j]) and the sines, for positions 0 .. n_positions - 1. Angles are
 * products in F32, as the models were trained with; the tables are F32 or F64.
 */
typedef struct sw_rotary_tables {
    size_t n_positions;
    size_t n_frequencies;
    const float *frequencies;
    double scale;
    void *cos; /* [n_positions, n_frequencies] */
    void *sin;
} sw_rotary_tables;

void sw_rotary_tables_fill(sw_dtype dtype, const sw_rotary_tables *tables);

#endif
