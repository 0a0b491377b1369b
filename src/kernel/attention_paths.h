/* The ways of attention, for attention.c. Key/value heads divide the heads. */
#ifndef SW_KERNEL_ATTENTION_PATHS_H
#define SW_KERNEL_ATTENTION_PATHS_H

#include "kernel/attention.h"

/* One query a row of the batch. Room in elements, false on overflow. */
bool sw_attention_query_room(const sw_kernel *kernel, const sw_attention_args *args, uint64_t *n_elems);
void sw_attention_query(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_args *args,
                        void *workspace);

#endif
