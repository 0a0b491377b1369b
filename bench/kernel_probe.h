/* What the machine can do, measured without the kernels: multiply-adds, reads, copies, and oneDNN called
 * directly. */
#ifndef SW_BENCH_KERNEL_PROBE_H
#define SW_BENCH_KERNEL_PROBE_H

#include "kernel/product.h"

/* A loop of F32 multiply-adds in registers, on the widest unit; how many operations one call does. */
void probe_peak(uint32_t n_threads);
double probe_peak_flops(uint32_t n_threads);

void probe_read(const char *memory, size_t bytes, uint32_t n_threads);
void probe_copy(void *to, const void *from, size_t bytes, uint32_t n_threads);

/* The product by a primitive of its own, B as it lies or packed by the library beforehand; NULL: it failed.
 */
typedef struct probe_product probe_product;
probe_product *probe_product_open(const sw_product *p, bool is_packed);
void probe_product_run(const probe_product *probe);
void probe_product_close(probe_product *probe);

#endif
