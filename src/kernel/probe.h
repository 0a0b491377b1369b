/*
 * What the machine can do, measured without the kernels: multiply-adds in registers, reads, copies, and the
 * library of products called directly. For benchmarks: each works with all threads of the context, a share
 * each.
 */
#ifndef SW_KERNEL_PROBE_H
#define SW_KERNEL_PROBE_H

#include "kernel/product.h"

/* Each thread to a core of its own, of those that the process may use, from the `first` on; false: they are
 * too few. */
bool sw_probe_pin(const sw_kernel *kernel, size_t first);

/* A loop of F32 multiply-adds in registers, on the widest unit; how many operations one call does. */
void sw_probe_peak(const sw_kernel *kernel);
double sw_probe_peak_flops(const sw_kernel *kernel);

void sw_probe_read(const sw_kernel *kernel, const void *memory, size_t n_bytes);
void sw_probe_copy(const sw_kernel *kernel, void *to, const void *from, size_t n_bytes);

/* Seconds that a line of memory takes from one core to the next one; 0: one thread, or no two that run at
 * once. */
double sw_probe_line(const sw_kernel *kernel);

/* ---- the library of products ---- */

const char *sw_probe_library_name(void); /* "oneDNN"; NULL: the build has none */

/*
 * The product by a primitive of its own, B as it lies, or packed by the library beforehand; strides are
 * without gaps. SW_E_ARGUMENT in a build without a library.
 */
typedef struct sw_probe_product sw_probe_product;
sw_status sw_probe_product_create(sw_probe_product **out, const sw_kernel *kernel, const sw_product *product,
                                  bool is_packed, sw_error *err);
void sw_probe_product_run(const sw_probe_product *probe);
void sw_probe_product_destroy(sw_probe_product *probe); /* NULL is fine */

#endif
