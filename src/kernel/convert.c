/* Conversions of arrays (kernel/convert.h). */
#include "kernel/convert.h"

#include "kernel/loops.h"

void sw_kernel_to_bf16(const sw_kernel *kernel, const float *from, uint16_t *to, size_t n)
{
    sw_kernel_do(kernel, SW_DTYPE_F32, SW_LOOP_TO_BF16, &(sw_convert_args){from, to}, n, 1);
}

void sw_kernel_from_bf16(const sw_kernel *kernel, const uint16_t *from, float *to, size_t n)
{
    sw_kernel_do(kernel, SW_DTYPE_F32, SW_LOOP_FROM_BF16, &(sw_convert_args){from, to}, n, 1);
}

void sw_kernel_to_f16(const sw_kernel *kernel, const float *from, uint16_t *to, size_t n)
{
    sw_kernel_do(kernel, SW_DTYPE_F32, SW_LOOP_TO_F16, &(sw_convert_args){from, to}, n, 1);
}

void sw_kernel_from_f16(const sw_kernel *kernel, const uint16_t *from, float *to, size_t n)
{
    sw_kernel_do(kernel, SW_DTYPE_F32, SW_LOOP_FROM_F16, &(sw_convert_args){from, to}, n, 1);
}
