/*
 * Reference loops of loss.h, rows.h and optimizer.h for the type REAL, to be included by reference_f32.c and
 * reference_f64.c: the formula as it is read, in double, stored as REAL.
 */

/* Column of a row's target; the width where the row is ignored or its target is in another part. */
static size_t target_column(const sw_loss_args *l, size_t r)
{
    int64_t column = (int64_t)l->targets[r] - l->first;

    if (l->targets[r] < 0 || column < 0 || (uint64_t)column >= l->width)
        return l->width;
    return (size_t)column;
}

static void target_logit(const void *args, size_t begin, size_t end)
{
    const sw_loss_args *l = args;

    for (size_t r = begin; r < end; r++) {
        size_t column = target_column(l, r);
        ((REAL *)l->target_x)[r] = column == l->width ? 0 : ((const REAL *)l->x)[r * l->width + column];
    }
}

static void cross_entropy_back(const void *args, size_t begin, size_t end)
{
    const sw_loss_args *l = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)l->x + r * l->width;
        REAL *d_x = (REAL *)l->d_x + r * l->width;
        double max = (double)((const REAL *)l->max)[r];
        double sum = (double)((const REAL *)l->sum)[r];
        double factor = l->targets[r] < 0 ? 0 : l->factor;
        size_t target = target_column(l, r);
        for (size_t c = 0; c < l->width; c++) {
            double p = factor == 0 ? 0 : exp((double)x[c] - max) / sum;
            d_x[c] = (REAL)(factor * (p - (c == target)));
        }
    }
}

/* Row of the table that a number means; the number of rows when there is none. */
static size_t table_row(const sw_gather_args *g, size_t r)
{
    int64_t row = (int64_t)g->ids[r] - g->first;
    return row < 0 || (uint64_t)row >= g->n_table ? g->n_table : (size_t)row;
}

static double table_value(const sw_gather_args *g, size_t at)
{
    switch (g->table_type) {
    case SW_DTYPE_BF16:
        return (double)sw_float_of_bf16(((const uint16_t *)g->table)[at]);
    case SW_DTYPE_F16:
        return (double)sw_float_of_f16(((const uint16_t *)g->table)[at]);
    default:
        return (double)((const REAL *)g->table)[at];
    }
}

static void gather(const void *args, size_t begin, size_t end)
{
    const sw_gather_args *g = args;

    for (size_t r = begin; r < end; r++) {
        size_t row = table_row(g, r);
        REAL *out = (REAL *)g->out + r * g->width;
        for (size_t c = 0; c < g->width; c++)
            out[c] = row == g->n_table ? 0 : (REAL)table_value(g, row * g->width + c);
    }
}

static void scatter_add(const void *args, size_t begin, size_t end)
{
    const sw_gather_args *g = args;

    for (size_t r = 0; r < g->n_rows; r++) {
        size_t row = table_row(g, r);
        double weight = g->weights == NULL ? 1 : (double)((const REAL *)g->weights)[r];
        const REAL *from = (const REAL *)g->rows + r * g->width;
        REAL *to = (REAL *)g->sums + row * g->width;
        for (size_t c = begin; row != g->n_table && c < end; c++)
            to[c] = (REAL)((double)to[c] + weight * (double)from[c]);
    }
}

/* `count` times the largest of what is left, kept in order: count is small. */
static void top_k(const void *args, size_t begin, size_t end)
{
    const sw_top_k_args *t = args;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)t->x + r * t->width;
        int32_t *indices = t->indices + r * t->count;
        size_t n = 0;
        for (size_t c = 0; c < t->width; c++) {
            REAL value = isnan(x[c]) ? -(REAL)INFINITY : x[c];
            size_t at = n;
            for (; at > 0; at--) {
                REAL other = x[indices[at - 1]];
                if (!(value > (isnan(other) ? -(REAL)INFINITY : other)))
                    break;
            }
            if (at == t->count)
                continue;
            n += n < t->count;
            memmove(indices + at + 1, indices + at, (n - at - 1) * sizeof *indices);
            indices[at] = (int32_t)c;
        }
        for (size_t i = 0; t->values != NULL && i < n; i++)
            ((REAL *)t->values)[r * t->count + i] = x[indices[i]];
    }
}

static void adamw(const void *args, size_t begin, size_t end)
{
    const sw_optimizer_args *o = args;
    double first = 1 - pow(o->beta1, (double)o->step);
    double second = sqrt(1 - pow(o->beta2, (double)o->step));
    REAL *param = o->param;
    REAL *m = o->m;
    REAL *v = o->v;

    for (size_t i = begin; i < end; i++) {
        double g = (double)((const REAL *)o->grad)[i] * o->clip;
        double p = (double)param[i] * (1 - o->lr * o->decay);
        double mean = o->beta1 * (double)m[i] + (1 - o->beta1) * g;
        double square = o->beta2 * (double)v[i] + (1 - o->beta2) * g * g;
        m[i] = (REAL)mean;
        v[i] = (REAL)square;
        param[i] = (REAL)(p - o->lr / first * mean / (sqrt(square) / second + o->eps));
    }
}

static void sgd(const void *args, size_t begin, size_t end)
{
    const sw_optimizer_args *o = args;
    REAL *param = o->param;
    REAL *m = o->m;

    for (size_t i = begin; i < end; i++) {
        double g = (double)((const REAL *)o->grad)[i] * o->clip + o->decay * (double)param[i];
        if (m != NULL) {
            g = o->step == 1 ? g : o->beta1 * (double)m[i] + g;
            m[i] = (REAL)g;
        }
        param[i] = (REAL)((double)param[i] - o->lr * g);
    }
}
