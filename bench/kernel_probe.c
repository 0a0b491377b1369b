/* The probes of kernel_bench (kernel_probe.h). */
#include "kernel_probe.h"

#include <immintrin.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 12, STEPS = 200000 };

static volatile float sink; /* what is computed is used */

__attribute__((target("avx512f"))) static float peak_512(void)
{
    __m512 sums[CHAINS];
    __m512 a = _mm512_set1_ps(0.999F);
    __m512 b = _mm512_set1_ps(0.001F);

    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (size_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], a, b);
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    return _mm512_reduce_add_ps(sums[0]);
}

__attribute__((target("avx2,fma"))) static float peak_256(void)
{
    __m256 sums[CHAINS];
    __m256 a = _mm256_set1_ps(0.999F);
    __m256 b = _mm256_set1_ps(0.001F);

    for (size_t i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (size_t step = 0; step < STEPS; step++) {
#pragma GCC unroll 16
        for (size_t i = 0; i < CHAINS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], a, b);
    }
    for (size_t i = 1; i < CHAINS; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    return _mm256_cvtss_f32(sums[0]);
}

static bool has_512(void)
{
    return sw_kernel_variant_runs(SW_KERNEL_AVX512);
}

void probe_peak(uint32_t n_threads)
{
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (uint32_t i = 0; i < n_threads; i++)
        sink = has_512() ? peak_512() : peak_256();
}

double probe_peak_flops(uint32_t n_threads)
{
    return 2.0 * CHAINS * STEPS * (has_512() ? 16 : 8) * n_threads;
}

__attribute__((target("avx2"))) static long long read_stretch(const char *memory, size_t bytes)
{
    __m256i sums[4] = {_mm256_setzero_si256()};

    for (size_t i = 0; i + 128 <= bytes; i += 128) {
#pragma GCC unroll 4
        for (size_t u = 0; u < 4; u++) {
            const __m256i *at = (const __m256i *)(const void *)(memory + i + u * 32);
            sums[u] = _mm256_xor_si256(sums[u], _mm256_loadu_si256(at));
        }
    }
    sums[0] = _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
    return _mm256_extract_epi64(sums[0], 0);
}

void probe_read(const char *memory, size_t bytes, uint32_t n_threads)
{
    size_t share = bytes / n_threads;

#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (uint32_t i = 0; i < n_threads; i++)
        sink = (float)read_stretch(memory + i * share, share);
}

void probe_copy(void *to, const void *from, size_t bytes, uint32_t n_threads)
{
    size_t share = bytes / n_threads;

#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (uint32_t i = 0; i < n_threads; i++)
        memcpy((char *)to + i * share, (const char *)from + i * share, share);
}

struct probe_product {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[3];
    void *packed;
};

static dnnl_memory_desc_t matrix(size_t rows, size_t columns, sw_dtype dtype, bool is_transposed)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};

    memset(&desc, 0, sizeof desc);
    (void)dnnl_memory_desc_init_by_tag(&desc, 2, dims, dtype == SW_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32,
                                       is_transposed ? dnnl_ba : dnnl_ab);
    return desc;
}

static void *library_pointer(const void *memory)
{
    union {
        const void *given;
        void *taken;
    } pointer = {memory};
    return pointer.taken;
}

/* B in the order that the primitive chose. */
static bool pack_b(probe_product *probe, const sw_product *p, const dnnl_memory_desc_t *plain,
                   const dnnl_memory_desc_t *packed)
{
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;

    probe->packed = aligned_alloc(64, (dnnl_memory_desc_get_size(packed) + 63) / 64 * 64);
    bool is_made = probe->packed != NULL &&
                   dnnl_memory_set_data_handle(probe->arguments[1].memory, probe->packed) == dnnl_success &&
                   dnnl_memory_create(&from, plain, probe->engine, library_pointer(p->b)) == dnnl_success &&
                   dnnl_reorder_primitive_desc_create(&desc, plain, probe->engine, packed, probe->engine,
                                                      NULL) == dnnl_success &&
                   dnnl_primitive_create(&reorder, desc) == dnnl_success;
    if (is_made) {
        dnnl_exec_arg_t arguments[] = {
            {DNNL_ARG_FROM, from                      },
            {DNNL_ARG_TO,   probe->arguments[1].memory}
        };
        is_made = dnnl_primitive_execute(reorder, probe->stream, 2, arguments) == dnnl_success;
    }
    (void)dnnl_primitive_destroy(reorder);
    (void)dnnl_primitive_desc_destroy(desc);
    (void)dnnl_memory_destroy(from);
    return is_made;
}

static bool fill_probe(probe_product *probe, const sw_product *p, bool is_packed)
{
    dnnl_memory_desc_t a = matrix(p->m, p->k, p->a_type, p->a_is_transposed);
    dnnl_memory_desc_t plain = matrix(p->k, p->n, p->b_type, p->b_is_transposed);
    dnnl_memory_desc_t c = matrix(p->m, p->n, SW_DTYPE_F32, false);
    dnnl_memory_desc_t b = plain;
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_dims_t dims = {(dnnl_dim_t)p->k, (dnnl_dim_t)p->n};

    if (is_packed)
        (void)dnnl_memory_desc_init_by_tag(&b, 2, dims, p->b_type == SW_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32,
                                           dnnl_format_tag_any);
    if (dnnl_engine_create(&probe->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&probe->stream, probe->engine, dnnl_stream_default_flags) != dnnl_success ||
        dnnl_matmul_desc_init(&product, &a, &b, NULL, &c) != dnnl_success ||
        dnnl_primitive_desc_create(&desc, &product, NULL, probe->engine, NULL) != dnnl_success)
        return false;
    b = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    bool is_made = dnnl_primitive_create(&probe->primitive, desc) == dnnl_success &&
                   dnnl_memory_create(&probe->arguments[0].memory, &a, probe->engine,
                                      library_pointer(p->a)) == dnnl_success &&
                   dnnl_memory_create(&probe->arguments[1].memory, &b, probe->engine,
                                      library_pointer(p->b)) == dnnl_success &&
                   dnnl_memory_create(&probe->arguments[2].memory, &c, probe->engine, p->c) == dnnl_success;
    (void)dnnl_primitive_desc_destroy(desc);
    probe->arguments[0].arg = DNNL_ARG_SRC;
    probe->arguments[1].arg = DNNL_ARG_WEIGHTS;
    probe->arguments[2].arg = DNNL_ARG_DST;
    return is_made && (!is_packed || pack_b(probe, p, &plain, &b));
}

probe_product *probe_product_open(const sw_product *p, bool is_packed)
{
    probe_product *probe = calloc(1, sizeof *probe);

    if (probe != NULL && !fill_probe(probe, p, is_packed)) {
        probe_product_close(probe);
        return NULL;
    }
    return probe;
}

void probe_product_run(const probe_product *probe)
{
    (void)dnnl_primitive_execute(probe->primitive, probe->stream, 3, probe->arguments);
    (void)dnnl_stream_wait(probe->stream);
}

void probe_product_close(probe_product *probe)
{
    for (size_t i = 0; i < 3; i++)
        (void)dnnl_memory_destroy(probe->arguments[i].memory);
    (void)dnnl_primitive_destroy(probe->primitive);
    (void)dnnl_stream_destroy(probe->stream);
    (void)dnnl_engine_destroy(probe->engine);
    free(probe->packed);
    free(probe);
}
