/* Cross-entropy as blocks of rows (kernel/loss.h). */
#include "kernel/loss.h"

#include <math.h>

#include "kernel/loops.h"
#include "kernel/softmax.h"

void sw_kernel_target_logits(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_TARGET_LOGIT, args, args->n_rows, 1);
}

void sw_kernel_loss_of_sums(sw_dtype dtype, const sw_loss_args *args)
{
    for (size_t r = 0; r < args->n_rows; r++) {
        bool is_valid = args->targets[r] >= 0;
        if (dtype == SW_DTYPE_F64) {
            double lse = ((double *)args->max)[r] + log(((double *)args->sum)[r]);
            ((double *)args->loss)[r] = is_valid ? lse - ((double *)args->target_x)[r] : 0;
        } else {
            double lse = (double)((float *)args->max)[r] + log((double)((float *)args->sum)[r]);
            double loss = lse - (double)((float *)args->target_x)[r];
            ((float *)args->loss)[r] = is_valid ? (float)loss : 0;
        }
    }
}

void sw_kernel_cross_entropy(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args)
{
    sw_softmax_args rows = {.n_rows = args->n_rows, .width = args->width, .x = args->x, .out = args->max};

    sw_kernel_row_max(kernel, dtype, &rows);
    rows.max = args->max;
    rows.out = args->sum;
    sw_kernel_row_exp_sum(kernel, dtype, &rows);
    sw_kernel_target_logits(kernel, dtype, args);
    sw_kernel_loss_of_sums(dtype, args);
}

void sw_kernel_cross_entropy_back(const sw_kernel *kernel, sw_dtype dtype, const sw_loss_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_CROSS_ENTROPY_BACK, args, args->n_rows, args->width);
}
