/* Results of parts of the keys put together, as blocks of rows (kernel/attention_merge.h). */
#include "kernel/attention_merge.h"

#include "kernel/loops.h"

static size_t rows_of(const sw_attention_merge_args *args)
{
    return args->n_batch * args->n_queries * args->n_heads;
}

void sw_kernel_attention_merge(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_merge_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_MERGE_PARTS, args, rows_of(args), args->v_width);
}

void sw_kernel_attention_sinks(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_merge_args *args)
{
    sw_kernel_do(kernel, dtype, SW_LOOP_MERGE_SINKS, args, rows_of(args), args->v_width);
}
