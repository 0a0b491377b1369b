/* Vector loops of norm.h, softmax.h and rotary.h, for avx2.c and avx512.c. */

INLINE vf norm_weight(const sw_norm_args *n, size_t c)
{
    if (n->weight == NULL)
        return v_set(1);
    return v_set((float)n->offset) + v_load_first((const float *)n->weight + c, n->width - c);
}

static void square_sum(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)n->x + r * n->width;
        ((float *)n->scale)[r] = dot_of(x, x, n->width);
    }
}

static void rms_apply(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;
    int is_long = v_is_long(n->n_rows * n->width);

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)n->x + r * n->width;
        float *y = (float *)n->y + r * n->width;
        vf s = v_set(((const float *)n->scale)[r]);
        for (size_t c = 0; c < n->width; c += LANES) {
            size_t left = n->width - c;
            v_put(is_long, y + c, v_load_first(x + c, left) * s * norm_weight(n, c), left);
        }
    }
    v_settle(is_long);
}

static void rms_dot(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)n->x + r * n->width;
        const float *d_y = (const float *)n->d_y + r * n->width;
        vf sum = v_set(0);
        for (size_t c = 0; c < n->width; c += LANES) {
            size_t left = n->width - c;
            vf g = v_load_first(d_y + c, left) * norm_weight(n, c);
            sum = v_fma(g, v_load_first(x + c, left), sum);
        }
        ((float *)n->dot)[r] = v_sum(sum);
    }
}

static void rms_back(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;
    int is_long = v_is_long(n->n_rows * n->width);
    float width = (float)(n->full_width != 0 ? n->full_width : n->width);

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)n->x + r * n->width;
        const float *d_y = (const float *)n->d_y + r * n->width;
        float *d_x = (float *)n->d_x + r * n->width;
        float s = ((const float *)n->scale)[r];
        vf scale_of_row = v_set(s);
        vf pull = v_set(-(s * s * s) * (((const float *)n->dot)[r] / width));
        for (size_t c = 0; c < n->width; c += LANES) {
            size_t left = n->width - c;
            vf g = v_load_first(d_y + c, left) * norm_weight(n, c);
            v_put(is_long, d_x + c, v_fma(v_load_first(x + c, left), pull, scale_of_row * g), left);
        }
    }
    v_settle(is_long);
}

/* d_weight += d_y * h, h = (x - mean) * s, for row r and `vectors` vectors from column c on. */
INLINE void weight_part(const sw_norm_args *n, vf mean, vf s, size_t r, size_t c, size_t left, size_t vectors)
{
    enum { VECTORS = 4 };
    const float *x = (const float *)n->x + r * n->width + c;
    const float *d_y = (const float *)n->d_y + r * n->width + c;
    float *d_weight = (float *)n->d_weight + c;
    vf sums[VECTORS];

    UNROLL
    for (size_t v = 0; v < vectors; v++) {
        vf h = (v_load_first(x + v * LANES, left) - mean) * s;
        sums[v] = v_fma(v_load_first(d_y + v * LANES, left), h, v_load_first(d_weight + v * LANES, left));
    }
    UNROLL
    for (size_t v = 0; v < vectors; v++)
        v_store_first(d_weight + v * LANES, sums[v], left);
}

/* Row by row, for few streams of memory are faster than many; the sums stay in the cache. */
INLINE void weight_row(const sw_norm_args *n, vf mean, size_t r, size_t begin, size_t end)
{
    enum { VECTORS = 4 };
    vf s = v_set(((const float *)n->scale)[r]);
    size_t c = begin;

    for (; end - c >= VECTORS * LANES; c += VECTORS * LANES)
        weight_part(n, mean, s, r, c, LANES, VECTORS);
    for (; c < end; c += LANES)
        weight_part(n, mean, s, r, c, end - c, 1);
}

static void rms_weight(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;

    for (size_t r = 0; r < copy.n_rows; r++)
        weight_row(&copy, v_set(0), r, begin, end);
}

/* Sums of their own, so that additions overlap. */
enum { SUMS = 4, ROWS = 8 };

INLINE float sum_of(const vf *sums)
{
    return v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* Sum over c of (x - mean), or of its square; lanes beyond the row take no part. */
INLINE float sum_from_mean(const float *x, size_t width, float mean, int is_squared)
{
    vf sums[SUMS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    size_t c = 0;

    for (; width - c >= SUMS * LANES; c += SUMS * LANES) {
        UNROLL
        for (size_t u = 0; u < SUMS; u++) {
            vf d = v_load_stream(x + c + u * LANES) - v_set(mean);
            sums[u] = v_fma(d, is_squared ? d : v_set(1), sums[u]);
        }
    }
    for (; c < width; c += LANES) {
        vf d = v_load_first(x + c, width - c) - v_set(mean);
        d = v_select(v_first(width - c), d, v_set(0));
        sums[0] = v_fma(d, is_squared ? d : v_set(1), sums[0]);
    }
    return sum_of(sums);
}

/* The statistics of a row. */
INLINE void layer_scale(const sw_norm_args *n, size_t r)
{
    const float *x = (const float *)n->x + r * n->width;
    float width = n->width == 0 ? 1 : (float)n->width;
    float mean = sum_from_mean(x, n->width, 0, 0) / width;

    ((float *)n->mean)[r] = mean;
    ((float *)n->scale)[r] = 1 / sqrtf(sum_from_mean(x, n->width, mean, 1) / width + (float)n->eps);
}

INLINE void layer_apply(const sw_norm_args *n, int is_long, size_t r)
{
    const float *x = (const float *)n->x + r * n->width;
    const float *bias = n->bias;
    float *y = (float *)n->y + r * n->width;
    vf mean = v_set(((const float *)n->mean)[r]);
    vf s = v_set(((const float *)n->scale)[r]);

    for (size_t c = 0; c < n->width; c += LANES) {
        size_t left = n->width - c;
        vf normed = (v_load_first(x + c, left) - mean) * s * norm_weight(n, c);
        vf base = bias == NULL ? v_set(0) : v_load_first(bias + c, left);
        v_put(is_long, y + c, normed + base, left);
    }
}

static void layer_norm(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;
    int is_long = v_is_long(n->n_rows * n->width);

    for (size_t first = begin; first < end; first += ROWS) { /* some rows are read, then written */
        size_t last = end - first < ROWS ? end : first + ROWS;
        for (size_t r = first; r < last; r++)
            layer_scale(n, r);
        for (size_t r = first; r < last; r++)
            layer_apply(n, is_long, r);
    }
    v_settle(is_long);
}

/* A row of the backward: g is the gradient of the normed value h. */
typedef struct back_row {
    const sw_norm_args *n;
    const float *x;
    const float *d_y;
    vf mean;
    vf s;
} back_row;

INLINE vf g_of(const back_row *row, size_t c, size_t left)
{
    return v_load_first(row->d_y + c, left) * norm_weight(row->n, c);
}

INLINE vf h_of(const back_row *row, size_t c, size_t left)
{
    return (v_load_first(row->x + c, left) - row->mean) * row->s;
}

/* The means of g and of g h over a row. */
INLINE void back_means(const back_row *row, size_t width, vf *mean_g, vf *mean_gh)
{
    vf sums[SUMS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    vf dots[SUMS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    size_t c = 0;

    for (; width - c >= SUMS * LANES; c += SUMS * LANES) {
        UNROLL
        for (size_t u = 0; u < SUMS; u++) {
            vf g = g_of(row, c + u * LANES, LANES);
            sums[u] = sums[u] + g;
            dots[u] = v_fma(g, h_of(row, c + u * LANES, LANES), dots[u]);
        }
    }
    for (; c < width; c += LANES) {
        vf g = g_of(row, c, width - c);
        sums[0] = sums[0] + g;
        dots[0] = v_fma(g, h_of(row, c, width - c), dots[0]);
    }
    *mean_g = v_set(sum_of(sums) / (float)width);
    *mean_gh = v_set(sum_of(dots) / (float)width);
}

static void layer_back(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;
    int is_long = v_is_long(n->n_rows * n->width);

    for (size_t r = begin; r < end; r++) {
        float *d_x = (float *)n->d_x + r * n->width;
        const back_row row = {.n = n,
                              .x = (const float *)n->x + r * n->width,
                              .d_y = (const float *)n->d_y + r * n->width,
                              .mean = v_set(((const float *)n->mean)[r]),
                              .s = v_set(((const float *)n->scale)[r])};
        vf mean_g;
        vf mean_gh;
        back_means(&row, n->width, &mean_g, &mean_gh);
        for (size_t c = 0; c < n->width; c += LANES) {
            size_t left = n->width - c;
            vf h = h_of(&row, c, left);
            v_put(is_long, d_x + c, row.s * (g_of(&row, c, left) - mean_g - h * mean_gh), left);
        }
    }
    v_settle(is_long);
}

static void layer_weight(const void *args, size_t begin, size_t end)
{
    const sw_norm_args copy = *(const sw_norm_args *)args;
    const sw_norm_args *n = &copy;

    for (size_t r = 0; r < n->n_rows; r++) {
        if (n->d_weight != NULL)
            weight_row(n, v_set(((const float *)n->mean)[r]), r, begin, end);
        if (n->d_bias != NULL)
            add_to_row(n->d_bias, (const float *)n->d_y + r * n->width, begin, end);
    }
}

static void softmax(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args copy = *(const sw_softmax_args *)args;
    const sw_softmax_args *a = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)a->x + r * a->width;
        float *out = (float *)a->out + r * a->width;
        float sum = exp_row(x, a->width, max_of_row(x, a->width), out);
        vf factor = v_set(sum == 0 ? 0 : 1 / sum);
        for (size_t c = 0; c < a->width; c += LANES)
            v_store_first(out + c, v_load_first(out + c, a->width - c) * factor, a->width - c);
    }
}

static void softmax_back(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args copy = *(const sw_softmax_args *)args;
    const sw_softmax_args *a = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *y = (const float *)a->y + r * a->width;
        const float *d_y = (const float *)a->d_y + r * a->width;
        float *out = (float *)a->out + r * a->width;
        vf dot = v_set(dot_of(y, d_y, a->width));
        for (size_t c = 0; c < a->width; c += LANES) {
            size_t n = a->width - c;
            v_store_first(out + c, v_load_first(y + c, n) * (v_load_first(d_y + c, n) - dot), n);
        }
    }
}

static void row_max(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args copy = *(const sw_softmax_args *)args;
    const sw_softmax_args *a = &copy;

    for (size_t r = begin; r < end; r++)
        ((float *)a->out)[r] = max_of_row((const float *)a->x + r * a->width, a->width);
}

static void row_exp_sum(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args copy = *(const sw_softmax_args *)args;
    const sw_softmax_args *a = &copy;

    for (size_t r = begin; r < end; r++) {
        float max = ((const float *)a->max)[r];
        ((float *)a->out)[r] = exp_row((const float *)a->x + r * a->width, a->width, max, NULL);
    }
}

INLINE void turn_half_split(const sw_rotary_args *a, const float *cosines, const float *sines, const float *x,
                            float *y)
{
    size_t half = a->rotated / 2;

    for (size_t j = 0; j < half; j += LANES) {
        size_t n = half - j;
        vf c = v_load_first(cosines + j, n);
        vf s = v_load_first(sines + j, n);
        vf x0 = v_load_first(x + j, n);
        vf x1 = v_load_first(x + half + j, n);
        s = a->is_back ? -s : s;
        v_store_first(y + j, v_fma(x0, c, -(x1 * s)), n);
        v_store_first(y + half + j, v_fma(x1, c, x0 * s), n);
    }
}

/* y = x * cos + neighbour * (-sin, sin), each angle for two lanes. */
INLINE void turn_interleaved(const sw_rotary_args *a, const float *cosines, const float *sines,
                             const float *x, float *y)
{
    for (size_t d = 0; d < a->rotated; d += LANES) {
        size_t n = a->rotated - d;
        vmask pairs = v_first(n / 2 < LANES / 2 ? n / 2 : LANES / 2);
        vf c = v_twice(v_load_masked(cosines + d / 2, pairs));
        vf s = v_minus_even(v_twice(v_load_masked(sines + d / 2, pairs)));
        vf x0 = v_load_first(x + d, n);
        s = a->is_back ? -s : s;
        v_store_first(y + d, v_fma(x0, c, v_swap_neighbours(x0) * s), n);
    }
}

static void rotary(const void *args, size_t begin, size_t end)
{
    const sw_rotary_args copy = *(const sw_rotary_args *)args;
    const sw_rotary_args *a = &copy;

    for (size_t t = begin; t < end; t++) {
        size_t at = (a->positions == NULL ? t : (size_t)a->positions[t]) * (a->rotated / 2);
        const float *cosines = (const float *)a->cos + at;
        const float *sines = (const float *)a->sin + at;
        for (size_t h = 0; h < a->n_heads; h++) {
            const float *x = (const float *)a->x + t * a->x_stride + h * a->width;
            float *y = (float *)a->y + t * a->y_stride + h * a->width;
            if (a->is_interleaved)
                turn_interleaved(a, cosines, sines, x, y);
            else
                turn_half_split(a, cosines, sines, x, y);
            for (size_t d = a->rotated; d < a->width; d += LANES)
                v_store_first(y + d, v_load_first(x + d, a->width - d), a->width - d);
        }
    }
}
