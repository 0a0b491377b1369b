/* Blocks handed out to threads: the only place with parallel regions. */
#include "kernel/context.h"

#ifdef _OPENMP
#include <omp.h>
#endif

size_t sw_kernel_thread_index(void)
{
#ifdef _OPENMP
    return (size_t)omp_get_thread_num();
#else
    return 0;
#endif
}

void sw_kernel_use_threads(const sw_kernel *kernel)
{
#ifdef _OPENMP
    omp_set_num_threads((int)kernel->n_threads);
#else
    (void)kernel;
#endif
}

static size_t block_count(size_t n, size_t grain)
{
    return n / grain + (n % grain != 0);
}

static void do_block(sw_block_fn *block, const void *args, size_t index, size_t n, size_t grain)
{
    size_t begin = index * grain;
    block(args, begin, n - begin < grain ? n : begin + grain);
}

void sw_kernel_run(const sw_kernel *kernel, sw_block_fn *block, const void *args, size_t n, size_t grain)
{
    size_t n_blocks = block_count(n, grain);

    if (n_blocks < 2 || kernel->n_threads < 2) {
        for (size_t i = 0; i < n_blocks; i++)
            do_block(block, args, i, n, grain);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(kernel->n_threads)
#endif
    for (size_t i = 0; i < n_blocks; i++)
        do_block(block, args, i, n, grain);
}

void sw_kernel_run_uneven(const sw_kernel *kernel, sw_block_fn *block, const void *args, size_t n,
                          size_t grain)
{
    size_t n_blocks = block_count(n, grain);

    if (n_blocks < 2 || kernel->n_threads < 2) {
        sw_kernel_run(kernel, block, args, n, grain);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(kernel->n_threads)
#endif
    for (size_t i = 0; i < n_blocks; i++)
        do_block(block, args, i, n, grain);
}

size_t sw_kernel_column_grain(const sw_kernel *kernel, size_t n)
{
    enum { LEAST = 256, MOST = 4096, STEP = 64 };
    size_t share = n / kernel->n_threads / STEP * STEP + STEP; /* at least a thread's */

    return share < LEAST ? LEAST : share > MOST ? MOST : share;
}

void sw_kernel_do(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop, const void *args, size_t n,
                  size_t width)
{
    sw_kernel_run(kernel, sw_kernel_loop(kernel, dtype, loop), args, n, sw_kernel_grain(width));
}
