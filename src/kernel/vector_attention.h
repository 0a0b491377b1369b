/* Vector loops of attention tiles, for avx2.c and avx512.c. */

/* The scores of the keys from column c on, and what a slope adds to them. */
INLINE vf with_alibi(const sw_score_args *s, size_t r, size_t c, vf x)
{
    vf slope = v_set((float)s->slope);
    uint16_t rounded[LANES];

    if (s->rounded_alibi == 0)
        return v_fma(slope, v_minus(s->k_positions + c, s->q_positions[r], s->n - c), x);
    v_store_bf16(rounded, slope * v_minus(s->k_positions + c, 0, s->n - c));
    return v_fma(v_set((float)s->rounded_alibi), v_load_bf16(rounded), x);
}

/* x of the scores of row r from column c on, -inf where hidden or beyond the row; and what the soft cap
 * leaves. */
INLINE v_pair masked_scores(const sw_score_args *s, size_t r, size_t c, sw_sight sight)
{
    size_t n = s->n - c;
    vf x = v_set((float)s->scale) * v_load_first((const float *)s->scores + r * s->stride + c, n);
    vf slope = v_set((float)s->scale);
    vmask seen = v_first(n);

    if (s->soft_cap > 0) {
        vf cap = v_set((float)s->soft_cap);
        vf t = v_tanh(x / cap);
        slope = slope * ((v_set(1) - t) * (v_set(1) + t));
        x = cap * t;
    }
    if (s->slope != 0)
        x = with_alibi(s, r, c, x);
    if (s->is_masked)
        seen = v_within(s->k_positions + c, sight.least, sight.most, n);
    return (v_pair){v_select(seen, x, v_set(-INFINITY)), slope};
}

INLINE sw_sight sight_of_row(const sw_score_args *s, size_t r)
{
    return sw_sight_of(s->is_causal, s->window, s->q_positions[r]);
}

INLINE void scale_row(float *row, size_t n, float factor)
{
    for (size_t d = 0; d < n; d += LANES)
        v_store_first(row + d, v_load_first(row + d, n - d) * v_set(factor), n - d);
}

static void score(const void *args, size_t begin, size_t end)
{
    const sw_score_args copy = *(const sw_score_args *)args;
    const sw_score_args *s = &copy;

    for (size_t r = begin; r < end; r++) {
        float *row = (float *)s->scores + r * s->stride;
        float *max = (float *)s->max + r;
        float *sum = (float *)s->sum + r;
        sw_sight sight = sight_of_row(s, r);
        vf largest = v_set(*max);
        for (size_t c = 0; c < s->n; c += LANES) {
            vf x = masked_scores(s, r, c, sight).value;
            v_store_first(row + c, x, s->n - c);
            largest = v_max(largest, x); /* x where it is NaN */
        }
        float now = v_largest(largest);
        float shift = now == -INFINITY ? 0 : now;
        float total = exp_row(row, s->n, shift, row);
        float keep = expf(*max - shift);
        *sum = *sum * keep + total;
        *max = now;
        if (keep != 1)
            scale_row((float *)s->out + r * s->width, s->width, keep);
    }
}

static void score_end(const void *args, size_t begin, size_t end)
{
    const sw_score_args copy = *(const sw_score_args *)args;
    const sw_score_args *s = &copy;

    for (size_t r = begin; r < end; r++) {
        float max = ((const float *)s->max)[r];
        float sink = s->sink == NULL ? -INFINITY : *(const float *)s->sink;
        float largest = sink > max ? sink : max;
        float shift = largest == -INFINITY ? 0 : largest;
        float keep = expf(max - shift);
        float total = ((const float *)s->sum)[r] * keep + expf(sink - shift);
        const float *out = (const float *)s->out + r * s->width;
        float *result = (float *)s->result + r * s->result_row;
        vf factor = v_set(total == 0 ? 0 : keep / total);
        for (size_t d = 0; d < s->width; d += LANES)
            v_store_first(result + d, v_load_first(out + d, s->width - d) * factor, s->width - d);
        ((float *)s->lse)[r] = total == 0 ? -INFINITY : shift + logf(total);
    }
}

static void score_join(const void *args, size_t begin, size_t end)
{
    const sw_join_args *a = args;

    for (size_t r = begin; r < end; r++) {
        float max = ((const float *)a->max)[r];
        float from_max = ((const float *)a->from_max)[r];
        float largest = from_max > max || from_max != from_max ? from_max : max;
        float shift = largest == -INFINITY ? 0 : largest;
        float keep = max == largest ? 1 : expf(max - shift);
        float take = from_max == largest ? 1 : expf(from_max - shift);
        float *out = (float *)a->out + r * a->width;
        const float *from = (const float *)a->from_out + r * a->width;
        for (size_t d = 0; d < a->width; d += LANES) {
            vf sum = v_set(keep) * v_load_first(out + d, a->width - d);
            v_store_first(out + d, v_fma(v_set(take), v_load_first(from + d, a->width - d), sum),
                          a->width - d);
        }
        ((float *)a->max)[r] = largest;
        ((float *)a->sum)[r] = keep * ((float *)a->sum)[r] + take * ((const float *)a->from_sum)[r];
    }
}

static void score_back(const void *args, size_t begin, size_t end)
{
    const sw_score_args copy = *(const sw_score_args *)args;
    const sw_score_args *s = &copy;

    for (size_t r = begin; r < end; r++) {
        float lse = ((const float *)s->lse)[r];
        vf shift = v_set(lse == -INFINITY ? 0 : lse); /* the scores are -inf then */
        vf delta = v_set(((const float *)s->delta)[r]);
        float *row = (float *)s->scores + r * s->stride;
        float *d_row = (float *)s->d_scores + r * s->stride;
        sw_sight sight = sight_of_row(s, r);
        for (size_t c = 0; c < s->n; c += LANES) {
            v_pair x = masked_scores(s, r, c, sight);
            vf p = v_exp(x.value - shift);
            vf d = v_load_first(d_row + c, s->n - c);
            v_store_first(row + c, p, s->n - c);
            v_store_first(d_row + c, p * (d - delta) * x.slope, s->n - c);
        }
    }
}
