/*
 * Between F32 and the two short floats. Rounded to the nearest, ties to the even one; infinities stay, what
 * is too large becomes one, subnormals are kept, NaN stays NaN. A short float is its 16 bits.
 */
#ifndef SW_KERNEL_CONVERT_H
#define SW_KERNEL_CONVERT_H

#include "kernel/kernel.h"

typedef struct sw_convert_args {
    const void *from;
    void *to; /* does not overlap `from` */
} sw_convert_args;

void sw_kernel_to_bf16(const sw_kernel *kernel, const float *from, uint16_t *to, size_t n);
void sw_kernel_from_bf16(const sw_kernel *kernel, const uint16_t *from, float *to, size_t n);
void sw_kernel_to_f16(const sw_kernel *kernel, const float *from, uint16_t *to, size_t n);
void sw_kernel_from_f16(const sw_kernel *kernel, const uint16_t *from, float *to, size_t n);

#endif
