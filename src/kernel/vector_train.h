/* Vector loops of loss.h, rows.h and optimizer.h, for avx2.c and avx512.c. */

static void cross_entropy_back(const void *args, size_t begin, size_t end)
{
    const sw_loss_args copy = *(const sw_loss_args *)args;
    const sw_loss_args *l = &copy;

    for (size_t r = begin; r < end; r++) {
        const float *x = (const float *)l->x + r * l->width;
        float *d_x = (float *)l->d_x + r * l->width;
        int64_t target = (int64_t)l->targets[r] - l->first;
        if (l->targets[r] < 0) {
            memset(d_x, 0, l->width * sizeof *d_x);
            continue;
        }
        vf max = v_set(((const float *)l->max)[r]);
        vf factor = v_set((float)(l->factor / (double)((const float *)l->sum)[r]));
        for (size_t c = 0; c < l->width; c += LANES)
            v_store_first(d_x + c, factor * v_exp(v_load_first(x + c, l->width - c) - max), l->width - c);
        if (target >= 0 && (uint64_t)target < l->width)
            d_x[target] -= (float)l->factor;
    }
}

INLINE vf load_table(const sw_gather_args *g, size_t at, size_t n)
{
    switch (g->table_type) {
    case SW_DTYPE_BF16:
        return v_load_bf16_first((const uint16_t *)g->table + at, n);
    case SW_DTYPE_F16:
        return v_load_f16_first((const uint16_t *)g->table + at, n);
    default:
        return v_load_first((const float *)g->table + at, n);
    }
}

static void gather(const void *args, size_t begin, size_t end)
{
    const sw_gather_args copy = *(const sw_gather_args *)args;
    const sw_gather_args *g = &copy;

    for (size_t r = begin; r < end; r++) {
        int64_t row = (int64_t)g->ids[r] - g->first;
        float *out = (float *)g->out + r * g->width;
        bool is_here = row >= 0 && (uint64_t)row < g->n_table;
        for (size_t c = 0; c < g->width; c += LANES) {
            size_t n = g->width - c;
            v_store_first(out + c, is_here ? load_table(g, (size_t)row * g->width + c, n) : v_set(0), n);
        }
    }
}

static void scatter_add(const void *args, size_t begin, size_t end)
{
    const sw_gather_args copy = *(const sw_gather_args *)args;
    const sw_gather_args *g = &copy;

    for (size_t r = 0; r < g->n_rows; r++) {
        int64_t row = (int64_t)g->ids[r] - g->first;
        if (row < 0 || (uint64_t)row >= g->n_table)
            continue;
        vf weight = v_set(g->weights == NULL ? 1 : ((const float *)g->weights)[r]);
        const float *from = (const float *)g->rows + r * g->width;
        float *to = (float *)g->sums + (size_t)row * g->width;
        for (size_t c = begin; c < end; c += LANES) {
            vf sum = v_fma(weight, v_load_first(from + c, end - c), v_load_first(to + c, end - c));
            v_store_first(to + c, sum, end - c);
        }
    }
}

static void adamw(const void *args, size_t begin, size_t end)
{
    const sw_optimizer_args copy = *(const sw_optimizer_args *)args;
    const sw_optimizer_args *o = &copy;
    double first = 1 - pow(o->beta1, (double)o->step);
    vf rate = v_set((float)(o->lr / first));
    vf second = v_set((float)(1 / sqrt(1 - pow(o->beta2, (double)o->step))));
    vf keep = v_set((float)(1 - o->lr * o->decay));
    vf b1 = v_set((float)o->beta1);
    vf b2 = v_set((float)o->beta2);
    vf new1 = v_set((float)(1 - o->beta1));
    vf new2 = v_set((float)(1 - o->beta2));

    for (size_t i = begin; i < end; i += LANES) {
        size_t n = end - i;
        float *param = (float *)o->param + i;
        float *m = (float *)o->m + i;
        float *v = (float *)o->v + i;
        vf g = v_load_first((const float *)o->grad + i, n) * v_set((float)o->clip);
        vf mean = v_fma(b1, v_load_first(m, n), new1 * g);
        vf square = v_fma(b2, v_load_first(v, n), new2 * g * g);
        vf step = rate * mean / v_fma(v_sqrt(square), second, v_set((float)o->eps));
        v_store_first(m, mean, n);
        v_store_first(v, square, n);
        v_store_first(param, v_fma(keep, v_load_first(param, n), -step), n);
    }
}
