/*
 * Reference loops of elementwise.h for the type REAL, to be included by reference_f32.c and reference_f64.c:
 * the formula as it is read, in double, stored as REAL.
 */

static void add(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    const REAL *b = m->b;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = a[i] + b[i];
}

static void multiply(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    const REAL *b = m->b;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = a[i] * b[i];
}

static void scale(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = (REAL)m->factor * a[i];
}

static void accumulate(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = (REAL)((double)out[i] + (double)(REAL)m->factor * (double)a[i]);
}

static void soft_cap(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = (REAL)(m->factor * tanh((double)a[i] / m->factor));
}

static void soft_cap_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    const REAL *b = m->b;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++) {
        double t = tanh((double)a[i] / m->factor);
        out[i] = (REAL)((double)b[i] * (1 - t * t));
    }
}

static void clamp(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    REAL *out = m->out;
    REAL limit = (REAL)m->factor;

    for (size_t i = begin; i < end; i++)
        out[i] = a[i] > limit ? limit : a[i] < -limit ? -limit : a[i];
}

static void clamp_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    const REAL *b = m->b;
    REAL *out = m->out;
    REAL limit = (REAL)m->factor;

    for (size_t i = begin; i < end; i++)
        out[i] = a[i] > limit || a[i] < -limit ? 0 : b[i];
}

static void activate(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = (REAL)reference_act(m->activation, (double)a[i]);
}

static void activate_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args *m = args;
    const REAL *a = m->a;
    const REAL *b = m->b;
    REAL *out = m->out;

    for (size_t i = begin; i < end; i++)
        out[i] = (REAL)((double)b[i] * reference_act_slope(m->activation, (double)a[i]));
}

static reference_glu glu_at(const sw_glu_args *g, size_t r, size_t c)
{
    double gate = (double)((const REAL *)g->gate)[r * g->stride + c];
    double up = (double)((const REAL *)g->up)[r * g->stride + c];

    return g->limit > 0 ? reference_clamped_glu(gate, up, g->limit, g->alpha)
                        : reference_gated(g->activation, gate, up);
}

static void glu(const void *args, size_t begin, size_t end)
{
    const sw_glu_args *g = args;

    for (size_t r = begin; r < end; r++) {
        REAL *out = (REAL *)g->out + r * g->width;
        for (size_t c = 0; c < g->width; c++)
            out[c] = (REAL)glu_at(g, r, c).value;
    }
}

static void glu_back(const void *args, size_t begin, size_t end)
{
    const sw_glu_args *g = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *d_out = (const REAL *)g->d_out + r * g->width;
        REAL *d_gate = (REAL *)g->d_gate + r * g->d_stride;
        REAL *d_up = (REAL *)g->d_up + r * g->d_stride;
        for (size_t c = 0; c < g->width; c++) {
            reference_glu unit = glu_at(g, r, c);
            d_gate[c] = (REAL)((double)d_out[c] * unit.by_gate);
            d_up[c] = (REAL)((double)d_out[c] * unit.by_up);
        }
    }
}

static void add_bias(const void *args, size_t begin, size_t end)
{
    const sw_rows_args *a = args;
    const REAL *bias = a->b;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->a + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        for (size_t c = 0; c < a->width; c++)
            out[c] = x[c] + bias[c];
    }
}

static void column_sum(const void *args, size_t begin, size_t end)
{
    const sw_rows_args *a = args;
    REAL *out = a->out;

    for (size_t c = begin; c < end; c++) {
        double sum = a->accumulate ? (double)out[c] : 0;
        for (size_t r = 0; r < a->n_rows; r++)
            sum += (double)((const REAL *)a->a)[r * a->width + c];
        out[c] = (REAL)sum;
    }
}

static void row_scale(const void *args, size_t begin, size_t end)
{
    const sw_rows_args *a = args;
    const REAL *factor = a->b;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->a + r * a->width;
        REAL *out = (REAL *)a->out + r * a->width;
        for (size_t c = 0; c < a->width; c++)
            out[c] = (REAL)((a->accumulate ? (double)out[c] : 0) + (double)x[c] * (double)factor[r]);
    }
}

static void row_dot(const void *args, size_t begin, size_t end)
{
    const sw_rows_args *a = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)a->a + r * a->width;
        const REAL *y = (const REAL *)a->b + r * a->width;
        double sum = 0;
        for (size_t c = 0; c < a->width; c++)
            sum += (double)x[c] * (double)y[c];
        ((REAL *)a->out)[r] = (REAL)sum;
    }
}
