/* What several vector loops do with a row. */
#ifndef SW_KERNEL_VECTOR_ROWS_H
#define SW_KERNEL_VECTOR_ROWS_H

#include "kernel/vector_math.h"

/* Four sums of their own, so that additions overlap. */
INLINE float dot_of(const float *a, const float *b, size_t n)
{
    vf sums[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    size_t i = 0;

    for (; n - i >= 4 * LANES; i += 4 * LANES) {
        UNROLL
        for (size_t u = 0; u < 4; u++)
            sums[u] = v_fma(v_load_stream(a + i + u * LANES), v_load_stream(b + i + u * LANES), sums[u]);
    }
    for (; i < n; i += LANES)
        sums[0] = v_fma(v_load_first(a + i, n - i), v_load_first(b + i, n - i), sums[0]);
    return v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* sums[c] += x[c], c from begin on. */
INLINE void add_to_row(float *sums, const float *x, size_t begin, size_t end)
{
    enum { VECTORS = 4 };
    size_t c = begin;

    for (; end - c >= VECTORS * LANES; c += VECTORS * LANES) {
        vf sum[VECTORS];
        UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            sum[v] = v_load(sums + c + v * LANES) + v_load(x + c + v * LANES);
        UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            v_store(sums + c + v * LANES, sum[v]);
    }
    for (; c < end; c += LANES)
        v_store_first(sums + c, v_load_first(sums + c, end - c) + v_load_first(x + c, end - c), end - c);
}

/* NaN, if there is one: each comparison keeps it, and so does the sum. */
INLINE float max_of_row(const float *x, size_t width)
{
    vf least = v_set(-INFINITY);
    vf max = least;
    vf nan = v_set(0);

    for (size_t c = 0; c < width; c += LANES) {
        vf value = v_select(v_first(width - c), v_load_first(x + c, width - c), least);
        nan = v_select(v_at_most(value, v_set(INFINITY)), nan, value);
        max = v_max(value, max);
    }
    return v_sum(nan) + v_largest(max);
}

/* Sum of exp(x - max) over a row; the terms to `out` if it is not NULL. */
INLINE float exp_row(const float *x, size_t width, float max, float *out)
{
    vf shift = v_set(max == -INFINITY ? 0 : max);
    vf sum = v_set(0);

    for (size_t c = 0; c < width; c += LANES) {
        vf e = v_exp(v_load_first(x + c, width - c) - shift);
        sum = sum + v_select(v_first(width - c), e, v_set(0));
        if (out != NULL)
            v_store_first(out + c, e, width - c);
    }
    return v_sum(sum);
}

#endif
