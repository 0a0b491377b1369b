/*
 * The context of all kernels: how many threads work, and which variant of the loops they run. Made once a
 * process (or thread), given to every kernel, never changed.
 *
 * Kernels are plain functions on pointers and sizes. Activations are F32 or F64; BF16 and F16 are forms of
 * storage, which conversions, matrix products and gathers read. Matrices are row-major, sizes count elements,
 * any size may be 0. Nothing here allocates but create, and a product of a shape that was not seen before.
 *
 * A loop is cut in blocks that depend on the sizes alone, and each number is made within one block: results
 * have the same bits for any number of threads.
 */
#ifndef SW_KERNEL_KERNEL_H
#define SW_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shardwright/error.h"
#include "shardwright/model.h"

/* Loops for vector units, and the plain C that they are tested against. */
typedef enum sw_kernel_variant {
    SW_KERNEL_BEST = 0, /* what the processor has, or what SW_KERNEL=reference|avx2|avx512 asks for */
    SW_KERNEL_REFERENCE,
    SW_KERNEL_AVX2,   /* with FMA and F16C */
    SW_KERNEL_AVX512, /* F, BW, DQ and VL */
    SW_KERNEL_VARIANT_COUNT_,
} sw_kernel_variant;

typedef struct sw_kernel sw_kernel;

/*
 * n_threads 0: as many as OpenMP would use. A variant that the processor does not have, or a word in
 * SW_KERNEL that is none, is SW_E_ARGUMENT. A context is used by one thread at a time.
 */
sw_status sw_kernel_create(sw_kernel **out, uint32_t n_threads, sw_kernel_variant variant, sw_error *err);
void sw_kernel_destroy(sw_kernel *kernel); /* NULL is fine */

uint32_t sw_kernel_threads(const sw_kernel *kernel);
sw_kernel_variant sw_kernel_variant_of(const sw_kernel *kernel);
const char *sw_kernel_variant_name(sw_kernel_variant variant); /* "avx512"; NULL when out of range */
bool sw_kernel_variant_runs(sw_kernel_variant variant);        /* on this processor */

#endif
