/*
 * Attention over parts of the keys put together. Each part has an out and its lse (kernel/attention.h), the
 * log of what its weights were divided by; weights of the whole follow from both.
 *
 *     lse' = log(exp(lse) + exp(part_lse));  out' = exp(lse - lse') * out + exp(part_lse - lse') * part
 *
 * Sinks are a part of the keys that gives nothing. They enter once, after all others.
 */
#ifndef SW_KERNEL_ATTENTION_MERGE_H
#define SW_KERNEL_ATTENTION_MERGE_H

#include "kernel/kernel.h"

typedef struct sw_attention_merge_args {
    size_t n_batch;
    size_t n_queries;
    size_t n_heads;
    size_t v_width;
    void *out;            /* [B, T, H, E] */
    void *lse;            /* [B, H, T] */
    const void *part;     /* [B, T, H, E]; merge */
    const void *part_lse; /* [B, H, T]; merge */
    const void *sinks;    /* [H]; sinks */
} sw_attention_merge_args;

void sw_kernel_attention_merge(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_merge_args *args);
void sw_kernel_attention_sinks(const sw_kernel *kernel, sw_dtype dtype, const sw_attention_merge_args *args);

#endif
