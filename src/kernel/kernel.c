/* The context: threads, and the choice of a variant by what the processor has. */
#include "kernel/kernel.h"

#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/alloc.h"
#include "base/status.h"
#include "kernel/context.h"

#if defined(__x86_64__)
#include <cpuid.h>
#define HAS_X86 1
#else
#define HAS_X86 0
#endif

typedef struct variant_row {
    const char *name;
    sw_block_fn *const *loops;
} variant_row;

// clang-format off
static const variant_row variants[] = {
    [SW_KERNEL_BEST]      = { "best",      NULL },
    [SW_KERNEL_REFERENCE] = { "reference", sw_loops_reference_f32 },
#if HAS_X86
    [SW_KERNEL_AVX2]      = { "avx2",      sw_loops_avx2 },
    [SW_KERNEL_AVX512]    = { "avx512",    sw_loops_avx512 },
#else
    [SW_KERNEL_AVX2]      = { "avx2",      NULL },
    [SW_KERNEL_AVX512]    = { "avx512",    NULL },
#endif
};
// clang-format on

_Static_assert(SW_COUNT(variants) == SW_KERNEL_VARIANT_COUNT_, "every variant has its row");

const char *sw_kernel_variant_name(sw_kernel_variant variant)
{
    return (size_t)variant < SW_COUNT(variants) ? variants[variant].name : NULL;
}

#if HAS_X86
static bool has_f16c(void) /* which not every compiler's __builtin_cpu_supports() knows */
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

bool sw_kernel_variant_runs(sw_kernel_variant variant)
{
    switch (variant) {
    case SW_KERNEL_BEST:
    case SW_KERNEL_REFERENCE:
        return true;
#if HAS_X86
    case SW_KERNEL_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case SW_KERNEL_AVX512:
        return sw_kernel_variant_runs(SW_KERNEL_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    default:
        return false;
    }
}

/* The word of the environment, else the last variant that runs. */
static sw_status choose_variant(sw_kernel_variant *out, sw_error *err)
{
    const char *word = getenv("SW_KERNEL"); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */

    for (size_t i = SW_COUNT(variants); i-- > SW_KERNEL_REFERENCE;) {
        bool fits =
            word == NULL ? sw_kernel_variant_runs((sw_kernel_variant)i) : strcmp(word, variants[i].name) == 0;
        if (fits) {
            *out = (sw_kernel_variant)i;
            return SW_OK;
        }
    }
    return SW_FAIL(err, SW_E_ARGUMENT, "use reference, avx2 or avx512, or unset it",
                   "SW_KERNEL: there is no variant '%s'", word == NULL ? "" : word);
}

static uint32_t default_threads(void)
{
#ifdef _OPENMP
    int n = omp_get_max_threads();
    return n > 0 ? (uint32_t)n : 1;
#else
    return 1;
#endif
}

sw_status sw_kernel_create(sw_kernel **out, uint32_t n_threads, sw_kernel_variant variant, sw_error *err)
{
    enum { MOST_THREADS = 4096 };

    if (variant == SW_KERNEL_BEST)
        SW_TRY(choose_variant(&variant, err));
    if (!sw_kernel_variant_runs(variant)) {
        const char *name = sw_kernel_variant_name(variant);
        return SW_FAIL(err, SW_E_ARGUMENT, "use reference", "this processor cannot run the kernels '%s'",
                       name == NULL ? "?" : name);
    }
    if (n_threads > MOST_THREADS) {
        return SW_FAIL(err, SW_E_ARGUMENT, "one thread a core is best", "%u threads are more than %d",
                       (unsigned)n_threads, (int)MOST_THREADS);
    }
    sw_kernel *kernel = sw_alloc_zero(1, sizeof *kernel);
    if (kernel == NULL)
        return SW_FAIL(err, SW_E_NO_MEMORY, "", "no memory for the kernels' context");
    kernel->n_threads = n_threads == 0 ? default_threads() : n_threads;
    kernel->variant = variant;
    *out = kernel;
    return SW_OK;
}

void sw_kernel_destroy(sw_kernel *kernel)
{
    if (kernel != NULL)
        sw_library_destroy(kernel->library);
    sw_free(kernel);
}

uint32_t sw_kernel_threads(const sw_kernel *kernel)
{
    return kernel->n_threads;
}

sw_kernel_variant sw_kernel_variant_of(const sw_kernel *kernel)
{
    return kernel->variant;
}

sw_block_fn *sw_kernel_loop(const sw_kernel *kernel, sw_dtype dtype, sw_loop loop)
{
    if (dtype == SW_DTYPE_F64)
        return sw_loops_reference_f64[loop];
    size_t variant = kernel->variant;
    while (variants[variant].loops[loop] == NULL)
        variant--;
    return variants[variant].loops[loop];
}
