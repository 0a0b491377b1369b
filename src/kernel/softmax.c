/* Softmax, its row sums, and rows divided by their sum, as blocks of rows (kernel/softmax.h). */
#include "kernel/softmax.h"

#include "kernel/loops.h"

void sw_kernel_softmax(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_SOFTMAX, args, args->n_rows, args->width);
}

void sw_kernel_softmax_back(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_SOFTMAX_BACK, args, args->n_rows, args->width);
}

void sw_kernel_row_max(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ROW_MAX, args, args->n_rows, args->width);
}

void sw_kernel_row_exp_sum(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_ROW_EXP_SUM, args, args->n_rows, args->width);
}

void sw_kernel_normalise(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_NORMALISE, args, args->n_rows, args->width);
}

void sw_kernel_normalise_back(const sw_kernel *kernel, sw_dtype dtype, const sw_softmax_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_NORMALISE_BACK, args, args->n_rows, args->width);
}
