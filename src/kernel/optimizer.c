/* Optimizer steps as blocks of elements (kernel/optimizer.h). */
#include "kernel/optimizer.h"

#include "kernel/loops.h"

void sw_kernel_adamw(const sw_kernel *kernel, sw_dtype dtype, const sw_optimizer_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ADAMW, args, args->n, 1);
}

void sw_kernel_sgd(const sw_kernel *kernel, sw_dtype dtype, const sw_optimizer_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_SGD, args, args->n, 1);
}
