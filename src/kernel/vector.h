/*
 * The vector unit behind one set of words, for avx2.c and avx512.c, which set SW_VECTOR to 8 or 16 lanes
 * before they include it: the only place with intrinsics. Loops are written once in these words (vector_*.h).
 * "First n": lanes 0 .. n-1 are read or written, the others are 0 or left alone; n may be more than the
 * lanes.
 */
#ifndef SW_KERNEL_VECTOR_H
#define SW_KERNEL_VECTOR_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define LANES ((size_t)SW_VECTOR)

/*
 * Loops begin with a copy of their arguments, which nobody else points to: a store of a vector may alias
 * whatever is behind a pointer, and all of it would be read again after each store.
 */

#if SW_VECTOR == 16

typedef __m512 vf;       /* floats */
typedef __m512i vpairs;  /* of BF16 */
typedef __mmask16 vmask; /* a bit a lane */

INLINE vf v_set(float x)
{
    return _mm512_set1_ps(x);
}

INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

/* Of a long stretch of memory, in halves: the processor fetches ahead of them better than of whole lines. */
INLINE vf v_load_stream(const float *p)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1);
}

INLINE void v_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}

INLINE void v_store_past(float *p, vf x) /* past the caches; p is aligned */
{
    _mm512_stream_ps(p, x);
}

INLINE vmask v_first(size_t n)
{
    return (vmask)(n >= LANES ? 0xffffU : (1U << n) - 1);
}

INLINE vf v_load_masked(const float *p, vmask mask)
{
    return _mm512_maskz_loadu_ps(mask, p);
}

INLINE void v_store_masked(float *p, vf x, vmask mask)
{
    _mm512_mask_storeu_ps(p, mask, x);
}

INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vf v_min(vf a, vf b) /* b where either is NaN */
{
    return _mm512_min_ps(a, b);
}

INLINE vf v_max(vf a, vf b) /* b where either is NaN */
{
    return _mm512_max_ps(a, b);
}

INLINE vf v_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}

INLINE vf v_abs(vf x)
{
    return _mm512_abs_ps(x);
}

INLINE vf v_round(vf x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vf v_scale_by_power(vf x, vf n) /* x * 2^n, n a whole number */
{
    return _mm512_scalef_ps(x, n);
}

INLINE vmask v_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

INLINE vmask v_at_most(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

INLINE vf v_select(vmask mask, vf yes, vf no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

INLINE float v_sum(vf x)
{
    return _mm512_reduce_add_ps(x);
}

INLINE vf v_sums(const vf *x) /* of LANES vectors, a lane each */
{
    vf pairs[8];
    vf fours[4];
    vf eights[2];

    UNROLL
    for (size_t i = 0; i < 8; i++)
        pairs[i] = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]) + _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        __m512d even = _mm512_castps_pd(pairs[2 * i]);
        __m512d odd = _mm512_castps_pd(pairs[2 * i + 1]);
        fours[i] =
            _mm512_castpd_ps(_mm512_unpacklo_pd(even, odd)) + _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd));
    }
    UNROLL
    for (size_t i = 0; i < 2; i++) {
        eights[i] = _mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], 0x88) +
                    _mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], 0xDD);
    }
    return _mm512_shuffle_f32x4(eights[0], eights[1], 0x88) +
           _mm512_shuffle_f32x4(eights[0], eights[1], 0xDD);
}

INLINE float v_largest(vf x)
{
    return _mm512_reduce_max_ps(x);
}

/* Lanes of the first n whose value is in least .. most. */
INLINE vmask v_within(const int32_t *p, int32_t least, int32_t most, size_t n)
{
    vmask first = v_first(n);
    __m512i x = _mm512_maskz_loadu_epi32(first, p);
    vmask above = _mm512_mask_cmp_epi32_mask(first, x, _mm512_set1_epi32(least), _MM_CMPINT_NLT);
    return _mm512_mask_cmp_epi32_mask(above, x, _mm512_set1_epi32(most), _MM_CMPINT_LE);
}

/* The first n less `x`, as floats. */
INLINE vf v_minus(const int32_t *p, int32_t x, size_t n)
{
    __m512i values = _mm512_maskz_loadu_epi32(v_first(n), p);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(values, _mm512_set1_epi32(x)));
}

INLINE vf v_swap_neighbours(vf x)
{
    return _mm512_permute_ps(x, 0xb1);
}

INLINE vf v_twice(vf x) /* lanes 0, 0, 1, 1, ... of the lower half */
{
    __m512i lanes = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(lanes, x);
}

INLINE vf v_minus_even(vf x) /* lanes 0, 2, ... with the other sign */
{
    return _mm512_mask_sub_ps(x, 0x5555, _mm512_setzero_ps(), x);
}

INLINE vf v_load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

INLINE vpairs v_load_pairs(const uint16_t *p) /* of a long stretch, as v_load_stream() */
{
    const __m256i *halves = (const __m256i *)(const void *)p;
    return _mm512_inserti32x8(_mm512_castsi256_si512(_mm256_loadu_si256(halves)),
                              _mm256_loadu_si256(halves + 1), 1);
}

INLINE vf v_even_of(vpairs x) /* those at even places, as floats */
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}

INLINE vf v_odd_of(vpairs x)
{
    return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-0x10000)));
}

INLINE void v_store_bf16(uint16_t *p, vf x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i kept = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
    _mm256_storeu_si256((__m256i *)(void *)p, half);
}

INLINE vf v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE void v_store_f16(uint16_t *p, vf x)
{
    __m256i half = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)(void *)p, half);
}

#else

typedef __m256 vf;      /* floats */
typedef __m256i vpairs; /* of BF16 */
typedef __m256 vmask;   /* the sign bit of a lane */

INLINE vf v_set(float x)
{
    return _mm256_set1_ps(x);
}

INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

INLINE vf v_load_stream(const float *p)
{
    return v_load(p);
}

INLINE void v_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}

INLINE void v_store_past(float *p, vf x)
{
    _mm256_stream_ps(p, x);
}

INLINE vmask v_first(size_t n)
{
    __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int count = n >= LANES ? SW_VECTOR : (int)n;
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes));
}

INLINE vf v_load_masked(const float *p, vmask mask)
{
    return _mm256_maskload_ps(p, _mm256_castps_si256(mask));
}

INLINE void v_store_masked(float *p, vf x, vmask mask)
{
    _mm256_maskstore_ps(p, _mm256_castps_si256(mask), x);
}

INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE vf v_min(vf a, vf b) /* b where either is NaN */
{
    return _mm256_min_ps(a, b);
}

INLINE vf v_max(vf a, vf b) /* b where either is NaN */
{
    return _mm256_max_ps(a, b);
}

INLINE vf v_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}

INLINE vf v_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
}

INLINE vf v_round(vf x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x * 2^n, n a whole number of at most 250: in two steps, each a power that has an exponent of its own */
INLINE vf v_scale_by_power(vf x, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i half = _mm256_srai_epi32(whole, 1);
    __m256i rest = _mm256_sub_epi32(whole, half);
    __m256i bias = _mm256_set1_epi32(127);
    vf first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vf second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return x * first * second;
}

INLINE vmask v_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

INLINE vmask v_at_most(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}

INLINE vf v_select(vmask mask, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

INLINE float v_sum(vf x)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

INLINE vf v_sums(const vf *x)
{
    vf pairs[4];
    vf fours[2];

    UNROLL
    for (size_t i = 0; i < 4; i++)
        pairs[i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]) + _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    UNROLL
    for (size_t i = 0; i < 2; i++) {
        __m256d even = _mm256_castps_pd(pairs[2 * i]);
        __m256d odd = _mm256_castps_pd(pairs[2 * i + 1]);
        fours[i] =
            _mm256_castpd_ps(_mm256_unpacklo_pd(even, odd)) + _mm256_castpd_ps(_mm256_unpackhi_pd(even, odd));
    }
    return _mm256_permute2f128_ps(fours[0], fours[1], 0x20) +
           _mm256_permute2f128_ps(fours[0], fours[1], 0x31);
}

INLINE float v_largest(vf x)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* Lanes of the first n whose value is in least .. most. */
INLINE vmask v_within(const int32_t *p, int32_t least, int32_t most, size_t n)
{
    vmask first = v_first(n);
    __m256i x = _mm256_maskload_epi32(p, _mm256_castps_si256(first));
    __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(least), x);
    __m256i above = _mm256_cmpgt_epi32(x, _mm256_set1_epi32(most));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_or_si256(below, above)), first);
}

/* The first n less `x`, as floats. */
INLINE vf v_minus(const int32_t *p, int32_t x, size_t n)
{
    __m256i values = _mm256_maskload_epi32(p, _mm256_castps_si256(v_first(n)));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(values, _mm256_set1_epi32(x)));
}

INLINE vf v_swap_neighbours(vf x)
{
    return _mm256_permute_ps(x, 0xb1);
}

INLINE vf v_twice(vf x) /* lanes 0, 0, 1, 1, ... of the lower half */
{
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
}

INLINE vf v_minus_even(vf x) /* lanes 0, 2, ... with the other sign */
{
    return _mm256_xor_ps(x, _mm256_setr_ps(-0.0F, 0, -0.0F, 0, -0.0F, 0, -0.0F, 0));
}

INLINE vf v_load_bf16(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

INLINE vpairs v_load_pairs(const uint16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE vf v_even_of(vpairs x) /* those at even places, as floats */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}

INLINE vf v_odd_of(vpairs x)
{
    return _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-0x10000)));
}

INLINE void v_store_bf16(uint16_t *p, vf x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i kept = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
    __m128i low = _mm256_castsi256_si128(kept);
    __m128i high = _mm256_extracti128_si256(kept, 1);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packus_epi32(low, high));
}

INLINE vf v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

INLINE void v_store_f16(uint16_t *p, vf x)
{
    __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128((__m128i *)(void *)p, half);
}

#endif

INLINE vf v_load_first(const float *p, size_t n)
{
    return n >= LANES ? v_load(p) : v_load_masked(p, v_first(n));
}

INLINE void v_store_first(float *p, vf x, size_t n)
{
    if (n >= LANES)
        v_store(p, x);
    else
        v_store_masked(p, x, v_first(n));
}

/*
 * Results so long that caches do not hold them are written past them, where they lie aligned: a line is then
 * not read before it is written. A block that has done so ends with v_settle(), for others to read it.
 */
INLINE int v_is_long(size_t n)
{
    enum { LONG = 4 << 20 }; /* elements */
    return n >= LONG;
}

INLINE void v_put(int is_long, float *p, vf x, size_t n)
{
    if (is_long && n >= LANES && (uintptr_t)p % sizeof x == 0)
        v_store_past(p, x);
    else
        v_store_first(p, x, n);
}

INLINE void v_settle(int is_long)
{
    if (is_long)
        _mm_sfence();
}

INLINE vf v_load_bf16_first(const uint16_t *p, size_t n)
{
    uint16_t some[LANES] = {0};

    if (n >= LANES)
        return v_load_bf16(p);
    memcpy(some, p, n * sizeof *p);
    return v_load_bf16(some);
}

INLINE vf v_load_f16_first(const uint16_t *p, size_t n)
{
    uint16_t some[LANES] = {0};

    if (n >= LANES)
        return v_load_f16(p);
    memcpy(some, p, n * sizeof *p);
    return v_load_f16(some);
}

/* 16-bit values that lie in `some`, all of them or the first n, to p. */
INLINE void v_put_first(uint16_t *p, const uint16_t some[LANES], size_t n)
{
    memcpy(p, some, (n < LANES ? n : LANES) * sizeof *p);
}

#endif
