/*
 * Reference loops of norm.h, softmax.h and rotary.h for the type REAL, to be included by reference_f32.c and
 * reference_f64.c: the formula as it is read, in double, stored as REAL.
 */

static double norm_weight(const sw_norm_args *n, size_t c)
{
    if (n->weight == NULL)
        return 1;
    return n->offset + (double)((const REAL *)n->weight)[c];
}

static void square_sum(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        double sum = 0;
        for (size_t c = 0; c < n->width; c++)
            sum += (double)x[c] * (double)x[c];
        ((REAL *)n->scale)[r] = (REAL)sum;
    }
}

static void rms_apply(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        REAL *y = (REAL *)n->y + r * n->width;
        double s = (double)((const REAL *)n->scale)[r];
        for (size_t c = 0; c < n->width; c++)
            y[c] = (REAL)((double)x[c] * s * norm_weight(n, c));
    }
}

static void rms_dot(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        const REAL *d_y = (const REAL *)n->d_y + r * n->width;
        double sum = 0;
        for (size_t c = 0; c < n->width; c++)
            sum += (double)d_y[c] * norm_weight(n, c) * (double)x[c];
        ((REAL *)n->dot)[r] = (REAL)sum;
    }
}

/* d_x = s * (d_y * w - x * s^2 * dot / C) */
static void rms_back(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;
    double width = (double)(n->full_width != 0 ? n->full_width : n->width);

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        const REAL *d_y = (const REAL *)n->d_y + r * n->width;
        REAL *d_x = (REAL *)n->d_x + r * n->width;
        double s = (double)((const REAL *)n->scale)[r];
        double pull = s * s * (double)((const REAL *)n->dot)[r] / width;
        for (size_t c = 0; c < n->width; c++)
            d_x[c] = (REAL)(s * ((double)d_y[c] * norm_weight(n, c) - (double)x[c] * pull));
    }
}

static void rms_weight(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;

    for (size_t c = begin; c < end; c++) {
        double sum = 0;
        for (size_t r = 0; r < n->n_rows; r++) {
            size_t at = r * n->width + c;
            sum += (double)((const REAL *)n->d_y)[at] * (double)((const REAL *)n->x)[at] *
                   (double)((const REAL *)n->scale)[r];
        }
        REAL *d_weight = (REAL *)n->d_weight + c;
        *d_weight = (REAL)((double)*d_weight + sum);
    }
}

static void layer_norm(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;
    const REAL *bias = n->bias;
    double width = (double)n->width;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        REAL *y = (REAL *)n->y + r * n->width;
        double sum = 0;
        double squares = 0;
        for (size_t c = 0; c < n->width; c++)
            sum += (double)x[c];
        double mean = n->width == 0 ? 0 : sum / width;
        for (size_t c = 0; c < n->width; c++)
            squares += ((double)x[c] - mean) * ((double)x[c] - mean);
        double s = 1 / sqrt((n->width == 0 ? 0 : squares / width) + n->eps);
        for (size_t c = 0; c < n->width; c++) {
            double normed = ((double)x[c] - mean) * s * norm_weight(n, c);
            y[c] = (REAL)(normed + (bias == NULL ? 0 : (double)bias[c]));
        }
        ((REAL *)n->mean)[r] = (REAL)mean;
        ((REAL *)n->scale)[r] = (REAL)s;
    }
}

/* With h = (x - mean) * s and g = d_y * w: d_x = s * (g - mean(g) - h * mean(g * h)) */
static void layer_back(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;
    double width = (double)n->width;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)n->x + r * n->width;
        const REAL *d_y = (const REAL *)n->d_y + r * n->width;
        REAL *d_x = (REAL *)n->d_x + r * n->width;
        double mean = (double)((const REAL *)n->mean)[r];
        double s = (double)((const REAL *)n->scale)[r];
        double sum = 0;
        double dot = 0;
        for (size_t c = 0; c < n->width; c++) {
            double g = (double)d_y[c] * norm_weight(n, c);
            sum += g;
            dot += g * ((double)x[c] - mean) * s;
        }
        for (size_t c = 0; c < n->width; c++) {
            double g = (double)d_y[c] * norm_weight(n, c);
            d_x[c] = (REAL)(s * (g - sum / width - ((double)x[c] - mean) * s * dot / width));
        }
    }
}

static void layer_weight(const void *args, size_t begin, size_t end)
{
    const sw_norm_args *n = args;

    for (size_t c = begin; c < end; c++) {
        double sum = 0;
        double dot = 0;
        for (size_t r = 0; r < n->n_rows; r++) {
            double d_y = (double)((const REAL *)n->d_y)[r * n->width + c];
            double x = (double)((const REAL *)n->x)[r * n->width + c];
            sum += d_y;
            dot += d_y * (x - (double)((const REAL *)n->mean)[r]) * (double)((const REAL *)n->scale)[r];
        }
        if (n->d_weight != NULL)
            ((REAL *)n->d_weight)[c] = (REAL)((double)((REAL *)n->d_weight)[c] + dot);
        if (n->d_bias != NULL)
            ((REAL *)n->d_bias)[c] = (REAL)((double)((REAL *)n->d_bias)[c] + sum);
    }
}

static double max_of_row(const REAL *x, size_t width)
{
    double max = -INFINITY;

    for (size_t c = 0; c < width; c++)
        max = (double)x[c] > max || isnan(x[c]) ? (double)x[c] : max;
    return max;
}

static void softmax(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->x + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        double max = max_of_row(x, a->width);
        double shift = max == -INFINITY ? 0 : max;
        double sum = 0;
        for (size_t c = 0; c < a->width; c++)
            sum += exp((double)x[c] - shift);
        double factor = sum == 0 ? 0 : 1 / sum;
        for (size_t c = 0; c < a->width; c++)
            out[c] = (REAL)(exp((double)x[c] - shift) * factor);
    }
}

static void softmax_back(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *y = (const REAL *)a->y + r * a->width;
        const REAL *d_y = (const REAL *)a->d_y + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        double dot = 0;
        for (size_t c = 0; c < a->width; c++)
            dot += (double)y[c] * (double)d_y[c];
        for (size_t c = 0; c < a->width; c++)
            out[c] = (REAL)((double)y[c] * ((double)d_y[c] - dot));
    }
}

static void normalise(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->x + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        double sum = a->eps;
        for (size_t c = 0; c < a->width; c++)
            sum += (double)x[c];
        ((REAL *)a->sum)[r] = (REAL)sum;
        for (size_t c = 0; c < a->width; c++)
            out[c] = (REAL)((double)x[c] / sum);
    }
}

static void normalise_back(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *y = (const REAL *)a->y + r * a->width;
        const REAL *d_y = (const REAL *)a->d_y + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        double sum = (double)((const REAL *)a->sum)[r];
        double dot = 0;
        for (size_t c = 0; c < a->width; c++)
            dot += (double)y[c] * (double)d_y[c];
        for (size_t c = 0; c < a->width; c++)
            out[c] = (REAL)(((double)d_y[c] - dot) / sum);
    }
}

static void row_max(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++)
        ((REAL *)a->out)[r] = (REAL)max_of_row((const REAL *)a->x + r * a->width, a->width);
}

static void row_exp_sum(const void *args, size_t begin, size_t end)
{
    const sw_softmax_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->x + r * a->width;
        double max = (double)((const REAL *)a->max)[r];
        double sum = 0;
        for (size_t c = 0; c < a->width; c++)
            sum += exp((double)x[c] - (max == -INFINITY ? 0 : max));
        ((REAL *)a->out)[r] = (REAL)sum;
    }
}

static void rotary_head(const sw_rotary_args *a, const REAL *x, REAL *y, size_t position)
{
    size_t half = a->rotated / 2;
    const REAL *cosines = (const REAL *)a->cos + position * half;
    const REAL *sines = (const REAL *)a->sin + position * half;

    for (size_t j = 0; j < half; j++) {
        size_t first = a->is_interleaved ? 2 * j : j;
        size_t second = a->is_interleaved ? 2 * j + 1 : j + half;
        double c = (double)cosines[j];
        double s = a->is_back ? -(double)sines[j] : (double)sines[j];
        double x0 = (double)x[first];
        double x1 = (double)x[second];
        y[first] = (REAL)(x0 * c - x1 * s);
        y[second] = (REAL)(x1 * c + x0 * s);
    }
    for (size_t d = a->rotated; d < a->width; d++)
        y[d] = x[d];
}

static void rotary(const void *args, size_t begin, size_t end)
{
    const sw_rotary_args *a = args;

    for (size_t t = begin; t < end; t++) {
        size_t position = a->positions == NULL ? t : (size_t)a->positions[t];
        for (size_t h = 0; h < a->n_heads; h++) {
            rotary_head(a, (const REAL *)a->x + t * a->x_stride + h * a->width,
                        (REAL *)a->y + t * a->y_stride + h * a->width, position);
        }
    }
}
