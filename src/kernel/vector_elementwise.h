/* Vector loops of convert.h and elementwise.h, for avx2.c and avx512.c. */

static void to_bf16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args copy = *(const sw_convert_args *)args;
    const sw_convert_args *a = &copy;
    const float *from = a->from;
    uint16_t *to = a->to;
    uint16_t some[LANES];
    size_t i = begin;

    for (; end - i >= LANES; i += LANES)
        v_store_bf16(to + i, v_load(from + i));
    v_store_bf16(some, v_load_first(from + i, end - i));
    v_put_first(to + i, some, end - i);
}

static void from_bf16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args copy = *(const sw_convert_args *)args;
    const sw_convert_args *a = &copy;

    for (size_t i = begin; i < end; i += LANES)
        v_store_first((float *)a->to + i, v_load_bf16_first((const uint16_t *)a->from + i, end - i), end - i);
}

static void to_f16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args copy = *(const sw_convert_args *)args;
    const sw_convert_args *a = &copy;
    const float *from = a->from;
    uint16_t *to = a->to;
    uint16_t some[LANES];
    size_t i = begin;

    for (; end - i >= LANES; i += LANES)
        v_store_f16(to + i, v_load(from + i));
    v_store_f16(some, v_load_first(from + i, end - i));
    v_put_first(to + i, some, end - i);
}

static void from_f16(const void *args, size_t begin, size_t end)
{
    const sw_convert_args copy = *(const sw_convert_args *)args;
    const sw_convert_args *a = &copy;

    for (size_t i = begin; i < end; i += LANES)
        v_store_first((float *)a->to + i, v_load_f16_first((const uint16_t *)a->from + i, end - i), end - i);
}

static void add(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    const float *a = m->a;
    const float *b = m->b;

    for (size_t i = begin; i < end; i += LANES) {
        vf sum = v_load_first(a + i, end - i) + v_load_first(b + i, end - i);
        v_store_first((float *)m->out + i, sum, end - i);
    }
}

static void multiply(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    const float *a = m->a;
    const float *b = m->b;

    for (size_t i = begin; i < end; i += LANES) {
        vf product = v_load_first(a + i, end - i) * v_load_first(b + i, end - i);
        v_store_first((float *)m->out + i, product, end - i);
    }
}

static void scale(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf factor = v_set((float)m->factor);

    for (size_t i = begin; i < end; i += LANES)
        v_store_first((float *)m->out + i, factor * v_load_first((const float *)m->a + i, end - i), end - i);
}

static void accumulate(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf factor = v_set((float)m->factor);
    float *out = m->out;

    for (size_t i = begin; i < end; i += LANES) {
        vf x = v_load_first((const float *)m->a + i, end - i);
        v_store_first(out + i, v_fma(factor, x, v_load_first(out + i, end - i)), end - i);
    }
}

static void soft_cap(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf cap = v_set((float)m->factor);

    for (size_t i = begin; i < end; i += LANES) {
        vf x = v_load_first((const float *)m->a + i, end - i);
        v_store_first((float *)m->out + i, cap * v_tanh(x / cap), end - i);
    }
}

static void soft_cap_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf cap = v_set((float)m->factor);

    for (size_t i = begin; i < end; i += LANES) {
        vf t = v_tanh(v_load_first((const float *)m->a + i, end - i) / cap);
        vf d_out = v_load_first((const float *)m->b + i, end - i);
        v_store_first((float *)m->out + i, d_out * ((v_set(1) - t) * (v_set(1) + t)), end - i);
    }
}

INLINE void activate_by(const sw_map_args *m, size_t begin, size_t end, sw_activation activation)
{
    for (size_t i = begin; i < end; i += LANES) {
        vf x = v_load_first((const float *)m->a + i, end - i);
        v_store_first((float *)m->out + i, v_act(activation, x), end - i);
    }
}

static void clamp(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf limit = v_set((float)m->factor);

    for (size_t i = begin; i < end; i += LANES) {
        vf x = v_load_first((const float *)m->a + i, end - i);
        v_store_first((float *)m->out + i, v_max(-limit, v_min(limit, x)), end - i);
    }
}

static void clamp_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;
    vf limit = v_set((float)m->factor);

    for (size_t i = begin; i < end; i += LANES) {
        vf x = v_load_first((const float *)m->a + i, end - i);
        vf d_out = v_load_first((const float *)m->b + i, end - i);
        v_store_first((float *)m->out + i, v_select(v_less(limit, v_abs(x)), v_set(0), d_out), end - i);
    }
}

static void activate(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;

    switch (m->activation) { /* a constant in each of the loops */
    case SW_ACT_GELU:
        activate_by(m, begin, end, SW_ACT_GELU);
        break;
    case SW_ACT_GELU_TANH:
        activate_by(m, begin, end, SW_ACT_GELU_TANH);
        break;
    case SW_ACT_RELU:
        activate_by(m, begin, end, SW_ACT_RELU);
        break;
    case SW_ACT_SIGMOID:
        activate_by(m, begin, end, SW_ACT_SIGMOID);
        break;
    default:
        activate_by(m, begin, end, SW_ACT_SILU);
        break;
    }
}

INLINE void activate_back_by(const sw_map_args *m, size_t begin, size_t end, sw_activation activation)
{
    for (size_t i = begin; i < end; i += LANES) {
        v_pair at = v_act_both(activation, v_load_first((const float *)m->a + i, end - i));
        v_store_first((float *)m->out + i, at.slope * v_load_first((const float *)m->b + i, end - i),
                      end - i);
    }
}

static void activate_back(const void *args, size_t begin, size_t end)
{
    const sw_map_args copy = *(const sw_map_args *)args;
    const sw_map_args *m = &copy;

    switch (m->activation) { /* a constant in each of the loops */
    case SW_ACT_GELU:
        activate_back_by(m, begin, end, SW_ACT_GELU);
        break;
    case SW_ACT_GELU_TANH:
        activate_back_by(m, begin, end, SW_ACT_GELU_TANH);
        break;
    case SW_ACT_RELU:
        activate_back_by(m, begin, end, SW_ACT_RELU);
        break;
    case SW_ACT_SIGMOID:
        activate_back_by(m, begin, end, SW_ACT_SIGMOID);
        break;
    default:
        activate_back_by(m, begin, end, SW_ACT_SILU);
        break;
    }
}

/* The clamped unit: g * sigmoid(alpha * g) and its slope, for a gate that is clamped already. */
INLINE v_pair clamped_gate(vf g, vf alpha)
{
    vf s = v_sigmoid(alpha * g);
    return (v_pair){g * s, s * v_fma(alpha * g, v_set(1) - s, v_set(1))};
}

INLINE vf clamp_up(vf up, vf limit)
{
    return v_max(-limit, v_min(limit, up));
}

static void glu(const void *args, size_t begin, size_t end)
{
    const sw_glu_args copy = *(const sw_glu_args *)args;
    const sw_glu_args *g = &copy;
    vf limit = v_set((float)g->limit);
    vf alpha = v_set((float)g->alpha);

    for (size_t r = begin; r < end; r++) {
        const float *gates = (const float *)g->gate + r * g->stride;
        const float *ups = (const float *)g->up + r * g->stride;
        float *out = (float *)g->out + r * g->width;
        for (size_t c = 0; c < g->width; c += LANES) {
            vf gate = v_load_first(gates + c, g->width - c);
            vf up = v_load_first(ups + c, g->width - c);
            vf value = g->limit > 0
                           ? clamped_gate(v_min(limit, gate), alpha).value * (clamp_up(up, limit) + v_set(1))
                           : v_act(g->activation, gate) * up;
            v_store_first(out + c, value, g->width - c);
        }
    }
}

/* Slopes of a unit: `value` by up, `slope` by gate. */
INLINE v_pair glu_slopes(const sw_glu_args *g, vf gate, vf up)
{
    if (g->limit <= 0) {
        v_pair at = v_act_both(g->activation, gate);
        return (v_pair){at.value, at.slope * up};
    }
    vf limit = v_set((float)g->limit);
    vf zero = v_set(0);
    v_pair at = clamped_gate(v_min(limit, gate), v_set((float)g->alpha));
    vf by_gate = at.slope * (clamp_up(up, limit) + v_set(1));
    return (v_pair){v_select(v_less(limit, v_abs(up)), zero, at.value),
                    v_select(v_less(limit, gate), zero, by_gate)};
}

static void glu_back(const void *args, size_t begin, size_t end)
{
    const sw_glu_args copy = *(const sw_glu_args *)args;
    const sw_glu_args *g = &copy;
    int is_long = v_is_long(g->n_rows * g->width);

    for (size_t r = begin; r < end; r++) {
        const float *gates = (const float *)g->gate + r * g->stride;
        const float *ups = (const float *)g->up + r * g->stride;
        const float *d_out = (const float *)g->d_out + r * g->width;
        for (size_t c = 0; c < g->width; c += LANES) {
            size_t n = g->width - c;
            vf d = v_load_first(d_out + c, n);
            v_pair by = glu_slopes(g, v_load_first(gates + c, n), v_load_first(ups + c, n));
            v_put(is_long, (float *)g->d_gate + r * g->d_stride + c, d * by.slope, n);
            v_put(is_long, (float *)g->d_up + r * g->d_stride + c, d * by.value, n);
        }
    }
    v_settle(is_long);
}

static void add_bias(const void *args, size_t begin, size_t end)
{
    const sw_rows_args copy = *(const sw_rows_args *)args;
    const sw_rows_args *a = &copy;
    const float *bias = a->b;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)a->a + r * a->width;
        float *out = (float *)a->out + r * a->width;
        for (size_t c = 0; c < a->width; c += LANES) {
            size_t n = a->width - c;
            v_store_first(out + c, v_load_first(x + c, n) + v_load_first(bias + c, n), n);
        }
    }
}

static void column_sum(const void *args, size_t begin, size_t end)
{
    const sw_rows_args copy = *(const sw_rows_args *)args;
    const sw_rows_args *a = &copy;
    float *out = a->out;

    for (size_t c = begin; !a->accumulate && c < end; c += LANES)
        v_store_first(out + c, v_set(0), end - c);
    for (size_t r = 0; r < a->n_rows; r++)
        add_to_row(out, (const float *)a->a + r * a->width, begin, end);
}

static void row_scale(const void *args, size_t begin, size_t end)
{
    const sw_rows_args copy = *(const sw_rows_args *)args;
    const sw_rows_args *a = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)a->a + r * a->width;
        float *out = (float *)a->out + r * a->width;
        vf factor = v_set(((const float *)a->b)[r]);
        for (size_t c = 0; c < a->width; c += LANES) {
            size_t n = a->width - c;
            vf base = a->accumulate ? v_load_first(out + c, n) : v_set(0);
            v_store_first(out + c, v_fma(v_load_first(x + c, n), factor, base), n);
        }
    }
}

static void row_dot(const void *args, size_t begin, size_t end)
{
    const sw_rows_args copy = *(const sw_rows_args *)args;
    const sw_rows_args *a = &copy;

    for (size_t r = begin; r < end; r++) {
        size_t at = r * a->width;
        ((float *)a->out)[r] = dot_of((const float *)a->a + at, (const float *)a->b + at, a->width);
    }
}
