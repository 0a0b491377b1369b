/*
 * Rotary embedding: pairs of a head's first `rotated` elements are turned by the angle of their token, the
 * rest is copied. The tables are given, scaled as the model wants. Dims: T tokens, H heads, D head width.
 *
 *     half-split:  pair j is (x[j], x[j + rotated/2])     interleaved: pair j is (x[2j], x[2j + 1])
 *     y0 = x0 * cos - x1 * sin,  y1 = x1 * cos + x0 * sin
 *
 * The backward is the transposed turn: the same call with `is_back`.
 */
#ifndef SW_KERNEL_ROTARY_H
#define SW_KERNEL_ROTARY_H

#include "kernel/kernel.h"

typedef struct sw_rotary_args {
    size_t n_tokens;
    size_t n_heads;
    size_t width;   /* D */
    size_t rotated; /* even, at most D */
    bool is_interleaved;
    bool is_back;
    const void *cos;          /* [positions, rotated / 2] */
    const void *sin;          /* [positions, rotated / 2] */
    const int32_t *positions; /* [T]: a token's row of the tables; NULL: its index */
    const void *x;            /* [T, H, D], heads D apart */
    void *y;                  /* [T, H, D]; may be x */
    size_t x_stride;          /* from token to token */
    size_t y_stride;
} sw_rotary_args;

void sw_kernel_rotary(const sw_kernel *kernel, sw_dtype dtype, const sw_rotary_args *args);

#endif
