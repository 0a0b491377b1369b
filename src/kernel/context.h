/* What the context holds; for the files of this folder. */
#ifndef SW_KERNEL_CONTEXT_H
#define SW_KERNEL_CONTEXT_H

#include "kernel/loops.h"
#include "kernel/product_paths.h"

struct sw_kernel {
    uint32_t n_threads;
    sw_kernel_variant variant;
    sw_library *library; /* NULL until a product needs it */
};

#endif
