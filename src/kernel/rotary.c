/* Rotary embedding as blocks of tokens (kernel/rotary.h). */
#include "kernel/rotary.h"

#include "kernel/loops.h"

void sw_kernel_rotary(const sw_kernel *kernel, sw_dtype dtype, const sw_rotary_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ROTARY, args, args->n_tokens, args->n_heads * args->width);
}
