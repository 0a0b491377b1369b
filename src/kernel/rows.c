/* Gather and top-k as blocks of rows, scatter-add as blocks of columns, counting sort (kernel/rows.h). */
#include "kernel/rows.h"

#include "kernel/loops.h"

void sw_kernel_gather(const sw_kernel *kernel, sw_dtype dtype, const sw_gather_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_GATHER, args, args->n_rows, args->width);
}

void sw_kernel_scatter_add(const sw_kernel *kernel, sw_dtype dtype, const sw_gather_args *args)
{
    enum { COLUMNS = 64 }; /* each block goes through all rows: two rows of one number never meet */
    sw_kernel_run(kernel, sw_kernel_loop(kernel, dtype, SW_LOOP_SCATTER_ADD), args, args->width, COLUMNS);
}

void sw_kernel_top_k(const sw_kernel *kernel, sw_dtype dtype, const sw_top_k_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_TOP_K, args, args->n_rows, args->width);
}

void sw_kernel_sort(const int32_t *numbers, size_t n, size_t n_values, int32_t *order, int32_t *ends)
{
    int32_t sum = 0;

    for (size_t v = 0; v < n_values; v++)
        ends[v] = 0;
    for (size_t i = 0; i < n; i++)
        ends[numbers[i]]++;
    for (size_t v = 0; v < n_values; v++) { /* begins first: each place that is taken moves one on */
        int32_t count = ends[v];
        ends[v] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        order[ends[numbers[i]]++] = (int32_t)i;
}
