/* Reference loops of attention tiles for the type REAL, to be included by reference_f32.c and
 * reference_f64.c. */

/* What a slope adds to the score of a key. */
static double alibi(const sw_score_args *s, int32_t q, int32_t k)
{
    if (s->rounded_alibi == 0)
        return s->slope * ((double)k - (double)q);
    float product = (float)(s->slope * (double)k);
    return s->rounded_alibi * (double)sw_float_of_bf16(sw_bf16_of_float(product));
}

/* x of a score, -inf where the key is hidden; *slope is what the soft cap leaves of a change of q.k. */
static double masked_score(const sw_score_args *s, size_t r, size_t c, double *slope)
{
    double x = s->scale * (double)((const REAL *)s->scores)[r * s->stride + c];
    int32_t q = s->q_positions[r];
    int32_t k = s->k_positions[c];

    *slope = s->scale;
    if (s->soft_cap > 0) {
        double t = tanh(x / s->soft_cap);
        *slope = s->scale * (1 - t * t);
        x = s->soft_cap * t;
    }
    sw_sight sight = sw_sight_of(s->is_causal, s->window, q);
    if (s->is_masked && (k < sight.least || k > sight.most))
        return -INFINITY;
    return x + alibi(s, q, k);
}

static void score(const void *args, size_t begin, size_t end)
{
    const sw_score_args *s = args;
    double slope;

    for (size_t r = begin; r < end; r++) {
        REAL *row = (REAL *)s->scores + r * s->stride;
        REAL *max = (REAL *)s->max + r;
        REAL *sum = (REAL *)s->sum + r;
        REAL *out = (REAL *)s->out + r * s->width;
        REAL largest = *max;
        for (size_t c = 0; c < s->n; c++) {
            row[c] = (REAL)masked_score(s, r, c, &slope);
            largest = row[c] > largest || isnan(row[c]) ? row[c] : largest;
        }
        double shift = largest == -INFINITY ? 0 : (double)largest;
        double keep = exp((double)*max - shift);
        double total = (double)*sum * keep;
        for (size_t c = 0; c < s->n; c++) {
            row[c] = (REAL)exp((double)row[c] - shift);
            total += (double)row[c];
        }
        for (size_t d = 0; d < s->width; d++)
            out[d] = (REAL)((double)out[d] * keep);
        *max = largest;
        *sum = (REAL)total;
    }
}

static void score_end(const void *args, size_t begin, size_t end)
{
    const sw_score_args *s = args;

    for (size_t r = begin; r < end; r++) {
        double max = (double)((const REAL *)s->max)[r];
        double sum = (double)((const REAL *)s->sum)[r];
        double sink = s->sink == NULL ? -INFINITY : (double)*(const REAL *)s->sink;
        double largest = sink > max ? sink : max;
        double keep = max == -INFINITY ? 0 : exp(max - largest);
        double total = sum * keep + (sink == -INFINITY ? 0 : exp(sink - largest));
        REAL *result = (REAL *)s->result + r * s->result_row;
        for (size_t d = 0; d < s->width; d++)
            result[d] =
                total == 0 ? 0 : (REAL)((double)((const REAL *)s->out)[r * s->width + d] * keep / total);
        ((REAL *)s->lse)[r] = total == 0 ? -INFINITY : (REAL)(largest + log(total));
    }
}

static void score_join(const void *args, size_t begin, size_t end)
{
    const sw_join_args *a = args;

    for (size_t r = begin; r < end; r++) {
        double max = (double)((const REAL *)a->max)[r];
        double from_max = (double)((const REAL *)a->from_max)[r];
        double largest = from_max > max || isnan(from_max) ? from_max : max;
        double shift = largest == -INFINITY ? 0 : largest;
        double keep = exp(max - shift);
        double take = exp(from_max - shift);
        REAL *out = (REAL *)a->out + r * a->width;
        const REAL *from = (const REAL *)a->from_out + r * a->width;
        for (size_t d = 0; d < a->width; d++)
            out[d] = (REAL)(keep * (double)out[d] + take * (double)from[d]);
        ((REAL *)a->max)[r] = (REAL)largest;
        REAL *sum = (REAL *)a->sum + r;
        *sum = (REAL)(keep * (double)*sum + take * (double)((const REAL *)a->from_sum)[r]);
    }
}

static void score_back(const void *args, size_t begin, size_t end)
{
    const sw_score_args *s = args;

    for (size_t r = begin; r < end; r++) {
        double lse = (double)((const REAL *)s->lse)[r];
        double delta = (double)((const REAL *)s->delta)[r];
        for (size_t c = 0; c < s->n; c++) {
            size_t at = r * s->stride + c;
            REAL *d = (REAL *)s->d_scores + at;
            double slope;
            double x = masked_score(s, r, c, &slope);
            double p = x == -INFINITY ? 0 : exp(x - lse);
            ((REAL *)s->scores)[at] = (REAL)p;
            *d = (REAL)(p * ((double)*d - delta) * slope);
        }
    }
}

/* ---- parts of the keys put together ---- */

/* Of a row of [B, T, H] its place in [B, H, T]. */
static size_t place_of_lse(const sw_attention_merge_args *a, size_t row)
{
    size_t token = row / a->n_heads;
    return (token / a->n_queries * a->n_heads + row % a->n_heads) * a->n_queries + token % a->n_queries;
}

/* Bring the lse of a row up to date with that of a part, which is not -inf; what remains of the row's
 * weights.
 */
static double weight_kept(REAL *lse, double part_lse)
{
    double before = (double)*lse;
    double most = part_lse > before ? part_lse : before;
    double kept = exp(before - most);
    double total = kept + exp(part_lse - most);

    *lse = (REAL)(most + log(total));
    return kept / total;
}

static void merge_parts(const void *args, size_t begin, size_t end)
{
    const sw_attention_merge_args *a = args;

    for (size_t row = begin; row < end; row++) {
        REAL part_lse = ((const REAL *)a->part_lse)[place_of_lse(a, row)];
        REAL *out = (REAL *)a->out + row * a->v_width;
        const REAL *part = (const REAL *)a->part + row * a->v_width;
        if (part_lse == (REAL)-INFINITY)
            continue; /* it has seen nothing */
        REAL kept = (REAL)weight_kept((REAL *)a->lse + place_of_lse(a, row), (double)part_lse);
        for (size_t d = 0; d < a->v_width; d++)
            out[d] = kept * out[d] + (1 - kept) * part[d];
    }
}

static void merge_sinks(const void *args, size_t begin, size_t end)
{
    const sw_attention_merge_args *a = args;

    for (size_t row = begin; row < end; row++) {
        REAL sink = ((const REAL *)a->sinks)[row % a->n_heads];
        REAL *out = (REAL *)a->out + row * a->v_width;
        if (sink == (REAL)-INFINITY)
            continue;
        REAL kept = (REAL)weight_kept((REAL *)a->lse + place_of_lse(a, row), (double)sink);
        for (size_t d = 0; d < a->v_width; d++)
            out[d] *= kept;
    }
}
