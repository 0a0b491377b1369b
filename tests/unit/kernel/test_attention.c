/*
 * Attention of every form against a plain computation in F64 that makes the whole matrix; the backward
 * against differences; parts of the keys against all of them; threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/short_float.h"
#include "base/status.h"
#include "kernel/attention.h"
#include "kernel/attention_merge.h"
#include "kernel_op.h"

enum { Q, K, V, OUT, D_OUT, D_Q, D_K, D_V, LSE, SLOPES, SINKS, D_SINKS, ARRAYS };

typedef enum kind { SMALL, ANY, ONE_QUERY } kind;

/* An attention with arrays of its own. */
typedef struct made {
    sw_attention_args a;
    sw_dtype dtype;
    size_t sizes[ARRAYS];
    void *arrays[ARRAYS];
    int32_t *positions[2];
} made;

static sw_heads heads_of(const void *values, size_t n_tokens, size_t n_heads, size_t width, size_t gap)
{
    size_t token = n_heads * (width + gap);
    return (sw_heads){values, n_tokens * token, token, width + gap};
}

static sw_heads_out heads_out(void *values, size_t n_tokens, size_t n_heads, size_t width, size_t gap)
{
    sw_heads h = heads_of(values, n_tokens, n_heads, width, gap);
    return (sw_heads_out){values, h.batch, h.token, h.head};
}

/* Positions as a rank may hold them: in order from somewhere, any order, some of them padding. */
static int32_t *random_positions(gen *g, size_t n, bool may_be_padding)
{
    int32_t *positions = malloc((n + 1) * sizeof *positions);
    int32_t first = (int32_t)gen_below(g, 50);
    bool is_shuffled = gen_below(g, 2) == 0;

    assert_non_null(positions);
    for (size_t i = 0; i < n; i++) {
        positions[i] = is_shuffled ? (int32_t)gen_below(g, 300) : first + (int32_t)i;
        if (may_be_padding && gen_below(g, 10) == 0)
            positions[i] = -1;
    }
    return positions;
}

/* As a text is written: many keys, now and then more than 64 parts of them with 1,024 each. */
static void choose_one_query(sw_attention_args *a, gen *g)
{
    bool is_long = gen_below(g, 8) == 0;
    uint32_t most = is_long ? 3 : 70;

    a->n_batch = is_long ? 1 : gen_between(g, 1, 2);
    a->n_heads = a->n_kv_heads * gen_between(g, 1, is_long ? 2 : 6);
    a->n_queries = 1;
    a->n_keys = is_long ? 65536 + gen_below(g, 9000) : gen_below(g, 2500);
    a->width = gen_between(g, 1, most);
    a->v_width = gen_between(g, 1, most);
}

static void choose_form(made *m, gen *g, kind what)
{
    sw_attention_args *a = &m->a;
    size_t group = gen_between(g, 1, 3);
    bool is_small = what == SMALL;

    a->n_batch = gen_below(g, 3);
    a->n_kv_heads = gen_between(g, 1, 3);
    a->n_heads = a->n_kv_heads * group;
    a->n_queries = is_small               ? gen_between(g, 1, 7)
                   : gen_below(g, 3) == 0 ? gen_below(g, 5)
                                          : gen_below(g, 230);
    a->n_keys = is_small ? gen_between(g, 1, 7) : gen_below(g, 230);
    a->width = gen_between(g, 1, is_small ? 4 : 70);
    a->v_width = gen_below(g, 2) == 0 ? a->width : gen_between(g, 1, is_small ? 4 : 70);
    if (what == ONE_QUERY)
        choose_one_query(a, g);
    a->scale = 0.3 / sqrt((double)a->width);
    a->soft_cap = gen_below(g, 3) == 0 ? 2 : 0;
    a->is_causal = gen_below(g, 3) != 0;
    a->rounded_alibi = gen_below(g, 3) == 0 ? 0.5 : 0;
    a->window = gen_below(g, 3) == 0 ? gen_between(g, 1, is_small ? 4 : 120) : 0;
    if (gen_below(g, 2) == 0 || what == ONE_QUERY) {
        m->positions[0] = random_positions(g, a->n_queries, false);
        m->positions[1] = random_positions(g, a->n_keys, true);
    }
    a->q_positions = m->positions[0];
    a->k_positions = m->positions[1];
}

static void make(made *m, gen *g, sw_dtype dtype, kind what)
{
    sw_attention_args *a = &m->a;

    *m = (made){.dtype = dtype};
    choose_form(m, g, what);
    size_t gap = gen_below(g, 2) == 0 ? 0 : gen_below(g, 4);
    size_t q_rows = a->n_batch * a->n_queries * a->n_heads;
    size_t k_rows = a->n_batch * a->n_keys * a->n_kv_heads;
    m->sizes[Q] = m->sizes[D_Q] = q_rows * (a->width + gap);
    m->sizes[OUT] = m->sizes[D_OUT] = q_rows * (a->v_width + gap);
    m->sizes[K] = m->sizes[D_K] = k_rows * (a->width + gap);
    m->sizes[V] = m->sizes[D_V] = k_rows * (a->v_width + gap);
    m->sizes[LSE] = q_rows;
    m->sizes[SLOPES] = m->sizes[SINKS] = m->sizes[D_SINKS] = a->n_heads;
    for (size_t i = 0; i < ARRAYS; i++) {
        m->arrays[i] = guarded_alloc(dtype, m->sizes[i]);
        gen_fill(g, dtype, m->arrays[i], m->sizes[i]);
    }
    memset(m->arrays[D_SINKS], 0, a->n_heads * (dtype == SW_DTYPE_F64 ? 8 : 4));
    a->q = heads_of(m->arrays[Q], a->n_queries, a->n_heads, a->width, gap);
    a->k = heads_of(m->arrays[K], a->n_keys, a->n_kv_heads, a->width, gap);
    a->v = heads_of(m->arrays[V], a->n_keys, a->n_kv_heads, a->v_width, gap);
    a->d_out = heads_of(m->arrays[D_OUT], a->n_queries, a->n_heads, a->v_width, gap);
    a->out = heads_out(m->arrays[OUT], a->n_queries, a->n_heads, a->v_width, gap);
    a->d_q = heads_out(m->arrays[D_Q], a->n_queries, a->n_heads, a->width, gap);
    a->d_k = heads_out(m->arrays[D_K], a->n_keys, a->n_kv_heads, a->width, gap);
    a->d_v = heads_out(m->arrays[D_V], a->n_keys, a->n_kv_heads, a->v_width, gap);
    a->lse = m->arrays[LSE];
    a->slopes = gen_below(g, 3) == 0 ? m->arrays[SLOPES] : NULL;
    a->sinks = gen_below(g, 3) == 0 ? m->arrays[SINKS] : NULL;
    a->d_sinks = a->sinks == NULL ? NULL : m->arrays[D_SINKS];
    for (size_t h = 0; h < a->n_heads; h++) { /* small slopes, as ALiBi has them */
        if (dtype == SW_DTYPE_F64)
            ((double *)m->arrays[SLOPES])[h] = 0.01 * (double)(h + 1);
        else
            ((float *)m->arrays[SLOPES])[h] = 0.01F * (float)(h + 1);
    }
}

static bool clear(made *m)
{
    bool is_whole = true;

    for (size_t i = 0; i < ARRAYS; i++)
        is_whole = guarded_free(m->arrays[i], m->dtype, m->sizes[i]) && is_whole;
    free(m->positions[0]);
    free(m->positions[1]);
    return is_whole;
}

static void run(const sw_kernel *kernel, const made *m, bool is_backward)
{
    sw_error err = {0};
    size_t n_bytes = 0;

    for (int i = 0; i <= (int)is_backward; i++) {
        if (sw_attention_workspace(kernel, m->dtype, &m->a, i == 1, &n_bytes, &err) != SW_OK)
            fail_msg("%s", err.what);
        void *workspace = malloc(n_bytes + 1);
        assert_non_null(workspace);
        if (i == 0)
            sw_kernel_attention(kernel, m->dtype, &m->a, workspace);
        else
            sw_kernel_attention_back(kernel, m->dtype, &m->a, workspace);
        free(workspace);
    }
}

static double value_of(const made *m, const void *values, size_t i)
{
    return m->dtype == SW_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static double head_value(const made *m, const sw_heads *x, size_t b, size_t t, size_t h, size_t d)
{
    return value_of(m, x->values, b * x->batch + t * x->token + h * x->head + d);
}

/* The definition, key by key: logit of (query t, key s), -inf where it is not seen. */
static double logit(const made *m, size_t b, size_t h, size_t t, size_t s)
{
    const sw_attention_args *a = &m->a;
    double q = a->q_positions == NULL ? (double)t : a->q_positions[t];
    double k = a->k_positions == NULL ? (double)s : a->k_positions[s];
    size_t kv = h / (a->n_heads / a->n_kv_heads);
    double x = 0;

    if (k < 0 || (a->is_causal && k > q) || (a->window != 0 && q - k >= a->window))
        return -INFINITY;
    for (size_t d = 0; d < a->width; d++)
        x += head_value(m, &a->q, b, t, h, d) * head_value(m, &a->k, b, s, kv, d);
    x *= a->scale;
    if (a->soft_cap > 0)
        x = a->soft_cap * tanh(x / a->soft_cap);
    if (a->slopes == NULL)
        return x;
    double slope = value_of(m, a->slopes, h);
    float product = (float)(slope * k);
    return x + (a->rounded_alibi == 0
                    ? slope * (k - q)
                    : a->rounded_alibi * (double)sw_float_of_bf16(sw_bf16_of_float(product)));
}

/* Row (b, t, h) of out, and its lse. */
static double expected_row(const made *m, size_t b, size_t t, size_t h, double *row)
{
    const sw_attention_args *a = &m->a;
    size_t kv = h / (a->n_heads / a->n_kv_heads);
    double sum = a->sinks == NULL ? 0 : exp(value_of(m, a->sinks, h));

    memset(row, 0, a->v_width * sizeof *row);
    for (size_t s = 0; s < a->n_keys; s++) {
        double e = exp(logit(m, b, h, t, s));
        sum += e;
        for (size_t d = 0; d < a->v_width; d++)
            row[d] += e * head_value(m, &a->v, b, s, kv, d);
    }
    for (size_t d = 0; d < a->v_width; d++)
        row[d] = sum == 0 ? 0 : row[d] / sum;
    return log(sum);
}

static bool forward_is_the_definition(const made *m, double limit)
{
    const sw_attention_args *a = &m->a;
    sw_heads out = {a->out.values, a->out.batch, a->out.token, a->out.head};
    double row[80];

    for (size_t b = 0; b < a->n_batch; b++) {
        for (size_t t = 0; t < a->n_queries * a->n_heads; t++) {
            size_t h = t % a->n_heads;
            double lse = expected_row(m, b, t / a->n_heads, h, row);
            double got = value_of(m, a->lse, (b * a->n_heads + h) * a->n_queries + t / a->n_heads);
            double error = isinf(lse) && got == lse ? 0 : fabs(got - lse);
            for (size_t d = 0; d < a->v_width; d++)
                error = fmax(error, fabs(row[d] - head_value(m, &out, b, t / a->n_heads, h, d)) / 10);
            if (error <= limit)
                continue;
            (void)fprintf(stderr, "query %zu, head %zu is off by %g (%zu x %zu, width %zu, %zu)\n",
                          t / a->n_heads, h, error, a->n_queries, a->n_keys, a->width, a->v_width);
            return false;
        }
    }
    return true;
}

static bool every_variant_is_the_definition_of(gen *g, kind what)
{
    bool is_right = true;

    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        for (int i = 0; i < (v == SW_KERNEL_REFERENCE ? 2 : 1); i++) {
            gen same = *g;
            made m;
            sw_kernel *kernel = kernel_of(v, gen_between(&same, 1, 3));
            make(&m, &same, i == 0 ? SW_DTYPE_F32 : SW_DTYPE_F64, what);
            run(kernel, &m, false);
            is_right = forward_is_the_definition(&m, i == 0 ? 2e-5 : 1e-12) && is_right;
            is_right = clear(&m) && is_right;
            sw_kernel_destroy(kernel);
        }
    }
    return is_right;
}

static bool every_variant_is_the_definition(gen *g)
{
    return every_variant_is_the_definition_of(g, ANY);
}

static bool one_query_is_the_definition(gen *g)
{
    return every_variant_is_the_definition_of(g, ONE_QUERY);
}

static void one_query_of_many_keys_is_the_definition(void **state)
{
    (void)state;
    assert_true(gen_holds(one_query_is_the_definition, 30));
}

static void the_forward_is_the_definition(void **state)
{
    (void)state;
    assert_true(gen_holds(every_variant_is_the_definition, 30));
}

/* Gradients in F32 of each variant against F64 of the reference, on the same numbers. */
static bool gradients_of_variants_agree(gen *g)
{
    static const size_t compared[] = {OUT, D_Q, D_K, D_V, LSE, D_SINKS};
    bool is_right = true;

    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        gen same = *g;
        gen again = *g;
        made m;
        made exact;
        sw_kernel *kernel = kernel_of(v, 2);
        sw_kernel *reference = kernel_of(SW_KERNEL_REFERENCE, 1);
        make(&m, &same, SW_DTYPE_F32, ANY);
        make(&exact, &again, SW_DTYPE_F64, ANY);
        for (size_t i = 0; i < ARRAYS; i++) { /* the numbers of F32, gaps too */
            for (size_t j = 0; j < m.sizes[i]; j++)
                ((double *)exact.arrays[i])[j] = (double)((float *)m.arrays[i])[j];
        }
        run(kernel, &m, true);
        run(reference, &exact, true);
        for (size_t i = 0; i < SW_COUNT(compared); i++) {
            size_t which = compared[i];
            double *rounded = exact.arrays[which];
            float *f32 = malloc(m.sizes[which] * sizeof *f32 + 1);
            assert_non_null(f32);
            for (size_t j = 0; j < m.sizes[which]; j++)
                f32[j] = (float)rounded[j];
            double error = largest_error(SW_DTYPE_F32, m.arrays[which], f32, m.sizes[which], 1);
            if (!(error <= 2e-5)) {
                (void)fprintf(stderr, "%s: array %zu is off by %g\n", sw_kernel_variant_name(v), which,
                              error);
                is_right = false;
            }
            free(f32);
        }
        is_right = clear(&m) && clear(&exact) && is_right;
        sw_kernel_destroy(kernel);
        sw_kernel_destroy(reference);
    }
    return is_right;
}

static void gradients_of_each_variant_agree_with_the_exact_ones(void **state)
{
    (void)state;
    assert_true(gen_holds(gradients_of_variants_agree, 20));
}

static double objective(const sw_kernel *kernel, const made *m)
{
    const double *out = m->arrays[OUT];
    const double *d_out = m->arrays[D_OUT];
    double sum = 0;

    run(kernel, m, false);
    for (size_t i = 0; i < m->sizes[OUT]; i++)
        sum += out[i] * d_out[i];
    return sum;
}

static bool slope_is_right(const sw_kernel *kernel, made *m, size_t input, size_t gradient)
{
    const double step = 1e-5;
    double *x = m->arrays[input];

    for (size_t i = 0; i < m->sizes[input]; i++) {
        double kept = x[i];
        x[i] = kept + step;
        double above = objective(kernel, m);
        x[i] = kept - step;
        double below = objective(kernel, m);
        x[i] = kept;
        double slope = (above - below) / (2 * step);
        double got = ((double *)m->arrays[gradient])[i];
        if (fabs(got - slope) > 1e-6 * fmax(1, fabs(slope))) {
            (void)fprintf(stderr, "gradient %zu: [%zu] is %g and not %g\n", gradient, i, got, slope);
            return false;
        }
    }
    return true;
}

static bool backward_is_the_slope(gen *g)
{
    made m;
    sw_kernel *kernel = kernel_of(SW_KERNEL_REFERENCE, 1);

    make(&m, g, SW_DTYPE_F64, SMALL);
    for (size_t i = OUT; i <= D_V; i++) { /* gaps stand still, so that they add nothing to the differences */
        if (i != D_OUT)
            memset(m.arrays[i], 0, m.sizes[i] * sizeof(double));
    }
    run(kernel, &m, true);
    bool is_right = slope_is_right(kernel, &m, Q, D_Q) && slope_is_right(kernel, &m, K, D_K) &&
                    slope_is_right(kernel, &m, V, D_V);
    if (m.a.sinks != NULL)
        is_right = is_right && slope_is_right(kernel, &m, SINKS, D_SINKS);
    is_right = clear(&m) && is_right;
    sw_kernel_destroy(kernel);
    return is_right;
}

static void the_backward_is_the_slope_of_the_forward(void **state)
{
    (void)state;
    assert_true(gen_holds(backward_is_the_slope, 60));
}

static bool bits_of_kind_ignore_threads(gen *g, kind what)
{
    enum { THREADS = 6 };
    made m[THREADS];
    bool is_right = true;

    for (uint32_t n = 0; n < THREADS; n++) {
        gen same = *g;
        sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, n + 1);
        make(&m[n], &same, SW_DTYPE_F32, what);
        run(kernel, &m[n], what == ANY);
        sw_kernel_destroy(kernel);
    }
    for (size_t i = 0; i < ARRAYS; i++) {
        for (uint32_t n = 1; n < THREADS; n++)
            is_right = memcmp(m[0].arrays[i], m[n].arrays[i], m[0].sizes[i] * sizeof(float)) == 0 && is_right;
    }
    for (uint32_t n = 0; n < THREADS; n++)
        is_right = clear(&m[n]) && is_right;
    return is_right;
}

static bool bits_ignore_threads(gen *g)
{
    return bits_of_kind_ignore_threads(g, gen_below(g, 2) == 0 ? ANY : ONE_QUERY);
}

static void the_bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    assert_true(gen_holds(bits_ignore_threads, 20));
}

/* Two parts of the keys, with the lse of all: their d_q add up, their d_k and d_v are those rows of the
 * whole. */
static void the_backward_of_parts_of_the_keys_adds_up(void **state)
{
    enum { KEYS = 20, CUT = 7, WIDTH = 3 };
    gen g = {9, 9};
    double q[KEYS * WIDTH];
    double k[KEYS * WIDTH];
    double v[KEYS * WIDTH];
    double d_out[KEYS * WIDTH];
    double out[KEYS * WIDTH];
    double lse[KEYS];
    double d[3][3][KEYS * WIDTH]; /* whole, first part, second part: d_q, d_k, d_v */
    int32_t positions[KEYS];
    double workspace[40000];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_attention_args a = {
        .n_batch = 1,
        .n_queries = KEYS,
        .n_keys = KEYS,
        .n_heads = 1,
        .n_kv_heads = 1,
        .width = WIDTH,
        .v_width = WIDTH,
        .scale = 1,
        .is_causal = true,
        .q = {q,     0, WIDTH, 0},
        .k = {k,     0, WIDTH, 0},
        .v = {v,     0, WIDTH, 0},
        .out = {out,   0, WIDTH, 0},
        .lse = lse,
        .d_out = {d_out, 0, WIDTH, 0}
    };

    (void)state;
    double *const inputs[] = {q, k, v, d_out};
    for (size_t i = 0; i < 4; i++)
        gen_fill(&g, SW_DTYPE_F64, inputs[i], KEYS * WIDTH);
    for (int32_t i = 0; i < KEYS; i++)
        positions[i] = i;
    sw_kernel_attention(kernel, SW_DTYPE_F64, &a, workspace);
    for (size_t part = 0; part < 3; part++) {
        size_t first = part == 2 ? CUT : 0;
        a.n_keys = part == 0 ? KEYS : part == 1 ? CUT : KEYS - CUT;
        a.k.values = k + first * WIDTH;
        a.v.values = v + first * WIDTH;
        a.k_positions = positions + first;
        a.d_q = (sw_heads_out){d[part][0], 0, WIDTH, 0};
        a.d_k = (sw_heads_out){d[part][1] + first * WIDTH, 0, WIDTH, 0};
        a.d_v = (sw_heads_out){d[part][2] + first * WIDTH, 0, WIDTH, 0};
        sw_kernel_attention_back(kernel, SW_DTYPE_F64, &a, workspace);
    }
    for (size_t i = 0; i < KEYS * WIDTH; i++) {
        size_t part = i < CUT * WIDTH ? 1 : 2;
        assert_true(fabs(d[1][0][i] + d[2][0][i] - d[0][0][i]) < 1e-12);
        assert_true(fabs(d[part][1][i] - d[0][1][i]) < 1e-12);
        assert_true(fabs(d[part][2][i] - d[0][2][i]) < 1e-12);
    }
    sw_kernel_destroy(kernel);
}

/* A copy of the arguments for keys first .. first + n, which have their own positions. */
static sw_attention_args part_of_keys(const made *m, int32_t *positions, size_t first, size_t n)
{
    sw_attention_args a = m->a;
    size_t bytes = m->dtype == SW_DTYPE_F64 ? sizeof(double) : sizeof(float);

    for (size_t i = 0; i < n; i++)
        positions[i] = m->a.k_positions == NULL ? (int32_t)(first + i) : m->a.k_positions[first + i];
    a.k_positions = positions;
    a.n_keys = n;
    a.sinks = NULL;
    a.k.values = (const char *)a.k.values + first * a.k.token * bytes;
    a.v.values = (const char *)a.v.values + first * a.v.token * bytes;
    return a;
}

/* A random attention in three parts of its keys, merged with the sinks at the end, against the whole. */
static bool parts_make_the_whole(gen *g)
{
    enum { PARTS = 3, MOST = 230 };
    made m;
    int32_t positions[MOST];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 2);
    sw_dtype dtype = gen_below(g, 2) == 0 ? SW_DTYPE_F32 : SW_DTYPE_F64;

    make(&m, g, dtype, ANY);
    size_t bytes = dtype == SW_DTYPE_F64 ? sizeof(double) : sizeof(float);
    size_t n_lse = m.a.n_batch * m.a.n_queries * m.a.n_heads;
    size_t n_out = n_lse * m.a.v_width;
    char *merged[2] = {calloc(n_out + 1, bytes), calloc(n_lse + 1, bytes)};
    char *part[2] = {calloc(n_out + 1, bytes), calloc(n_lse + 1, bytes)};
    m.a.out = heads_out(m.arrays[OUT], m.a.n_queries, m.a.n_heads, m.a.v_width, 0);
    run(kernel, &m, false);
    sw_attention_merge_args merge = {m.a.n_batch, m.a.n_queries, m.a.n_heads, m.a.v_width, merged[0],
                                     merged[1],   part[0],       part[1],     m.a.sinks};
    for (size_t i = 0, first = 0; i < PARTS; i++) {
        made some = m;
        size_t n = i == PARTS - 1 ? m.a.n_keys - first : gen_below(g, (uint32_t)(m.a.n_keys - first) + 1);
        some.a = part_of_keys(&m, positions, first, n);
        char **to = i == 0 ? merged : part;
        some.a.out = heads_out(to[0], m.a.n_queries, m.a.n_heads, m.a.v_width, 0);
        some.a.lse = to[1];
        run(kernel, &some, false);
        if (i > 0)
            sw_kernel_attention_merge(kernel, dtype, &merge);
        first += n;
    }
    if (m.a.sinks != NULL)
        sw_kernel_attention_sinks(kernel, dtype, &merge);
    double limit = dtype == SW_DTYPE_F64 ? 1e-12 : 1e-5;
    bool is_right = largest_error(dtype, merged[0], m.arrays[OUT], n_out, 1) <= limit;
    for (size_t i = 0; i < n_lse; i++) {
        double got = value_of(&m, merged[1], i);
        double want = value_of(&m, m.arrays[LSE], i);
        is_right = is_right && (got == want || fabs(got - want) <= limit * fmax(1, fabs(want)));
    }
    for (int i = 0; i < 2; i++) {
        free(merged[i]);
        free(part[i]);
    }
    sw_kernel_destroy(kernel);
    return clear(&m) && is_right;
}

static void parts_of_the_keys_merge_to_the_whole(void **state)
{
    (void)state;
    assert_true(gen_holds(parts_make_the_whole, 40));
}

/* Twice the backward with `adds` is twice the gradient. */
static bool gradients_are_added(gen *g)
{
    static const size_t added[] = {D_Q, D_K, D_V};
    made once;
    made twice;
    gen same = *g;
    sw_kernel *kernel = kernel_of(SW_KERNEL_REFERENCE, 1);
    bool is_right = true;

    make(&once, g, SW_DTYPE_F64, SMALL);
    make(&twice, &same, SW_DTYPE_F64, SMALL);
    for (size_t i = 0; i < SW_COUNT(added); i++) {
        memset(once.arrays[added[i]], 0, once.sizes[added[i]] * sizeof(double));
        memset(twice.arrays[added[i]], 0, twice.sizes[added[i]] * sizeof(double));
    }
    twice.a.adds = true;
    run(kernel, &once, true);
    run(kernel, &twice, true);
    run(kernel, &twice, true);
    for (size_t i = 0; i < SW_COUNT(added); i++) {
        double *values = once.arrays[added[i]];
        for (size_t j = 0; j < once.sizes[added[i]]; j++)
            values[j] *= 2;
        is_right =
            largest_error(SW_DTYPE_F64, twice.arrays[added[i]], values, once.sizes[added[i]], 1) < 1e-12 &&
            is_right;
    }
    sw_kernel_destroy(kernel);
    return clear(&once) && clear(&twice) && is_right;
}

static void gradients_are_added_where_that_is_asked_for(void **state)
{
    (void)state;
    assert_true(gen_holds(gradients_are_added, 20));
}

/* Heads of a single query, which read keys together, against each of them by itself. */
static void check_one_query(size_t group, sw_kernel *kernel)
{
    enum { BATCH = 2, KV = 2, S = 150, D = 20, MOST = 2 * 2 * 9 * 20 };
    static float q[MOST], k[BATCH * S * KV * D], v[BATCH * S * KV * D], all[MOST], alone[MOST], lse[MOST];
    const int32_t at[BATCH] = {90, 149};
    gen g = {group, group};
    sw_attention_args a = {.n_batch = BATCH,
                           .n_queries = 1,
                           .n_keys = S,
                           .n_heads = KV * group,
                           .n_kv_heads = KV,
                           .width = D,
                           .v_width = D,
                           .scale = 0.5,
                           .is_causal = true,
                           .window = 100,
                           .q_positions = at,
                           .q_positions_batch = 1,
                           .q = heads_of(q, 1, KV * group, D, 0),
                           .k = heads_of(k, S, KV, D, 0),
                           .v = heads_of(v, S, KV, D, 0),
                           .out = heads_out(all, 1, KV * group, D, 0),
                           .lse = lse};

    gen_fill(&g, SW_DTYPE_F32, q, SW_COUNT(q));
    gen_fill(&g, SW_DTYPE_F32, k, SW_COUNT(k));
    gen_fill(&g, SW_DTYPE_F32, v, SW_COUNT(v));
    run(kernel, &(made){.a = a, .dtype = SW_DTYPE_F32}, false);
    for (size_t h = 0; h < KV * group; h++) {
        made one = {.a = a, .dtype = SW_DTYPE_F32};
        one.a.n_heads = one.a.n_kv_heads = 1;
        one.a.q.values = q + h * D;
        one.a.k.values = k + h / group * D;
        one.a.v.values = v + h / group * D;
        one.a.out.values = alone + h * D;
        run(kernel, &one, false);
    }
    assert_true(largest_error(SW_DTYPE_F32, all, alone, (size_t)BATCH * KV * group * D, 1) < 1e-5);
}

static void heads_of_one_query_give_what_each_gives_alone(void **state)
{
    (void)state;
    for (sw_kernel_variant variant = SW_KERNEL_REFERENCE; variant < SW_KERNEL_VARIANT_COUNT_; variant++) {
        if (!sw_kernel_variant_runs(variant))
            continue;
        sw_kernel *kernel = kernel_of(variant, 2);
        for (size_t group = 1; group <= 9; group++)
            check_one_query(group, kernel);
        sw_kernel_destroy(kernel);
    }
}

static void heads_that_do_not_fit_and_sizes_that_overflow_are_refused(void **state)
{
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_error err = {0};
    size_t n_bytes = 0;
    sw_attention_args a = {
        .n_batch = 1, .n_queries = 5, .n_keys = 5, .n_heads = 6, .n_kv_heads = 4, .width = 8, .v_width = 8};

    (void)state;
    assert_int_equal(sw_attention_workspace(kernel, SW_DTYPE_F32, &a, false, &n_bytes, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "attention: 4 key/value heads do not divide 6 heads");
    a.n_kv_heads = 0;
    assert_int_equal(sw_attention_workspace(kernel, SW_DTYPE_F32, &a, false, &n_bytes, &err), SW_E_ARGUMENT);
    a.n_kv_heads = 2;
    a.n_keys = 3000000000;
    assert_int_equal(sw_attention_workspace(kernel, SW_DTYPE_F32, &a, false, &n_bytes, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "attention of 5 queries and 3000000000 keys is too large");
    a.n_keys = 2000000000;
    a.n_batch = 1U << 30;
    assert_int_equal(sw_attention_workspace(kernel, SW_DTYPE_F32, &a, false, &n_bytes, &err), SW_E_LIMIT);
    sw_kernel_destroy(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forward_is_the_definition),
        cmocka_unit_test(one_query_of_many_keys_is_the_definition),
        cmocka_unit_test(gradients_of_each_variant_agree_with_the_exact_ones),
        cmocka_unit_test(the_backward_is_the_slope_of_the_forward),
        cmocka_unit_test(the_bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(the_backward_of_parts_of_the_keys_adds_up),
        cmocka_unit_test(parts_of_the_keys_merge_to_the_whole),
        cmocka_unit_test(gradients_are_added_where_that_is_asked_for),
        cmocka_unit_test(heads_of_one_query_give_what_each_gives_alone),
        cmocka_unit_test(heads_that_do_not_fit_and_sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
