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

/* What an element is chosen by. */
static REAL choice(const sw_top_k_args *t, const REAL *x, size_t c)
{
    REAL value = t->correction == NULL ? x[c] : x[c] + ((const REAL *)t->correction)[c];
    return isnan(value) ? -(REAL)INFINITY : value;
}

static REAL group_score(const sw_top_k_args *t, const REAL *x, size_t group)
{
    size_t width = t->width / t->n_groups;
    REAL best = -(REAL)INFINITY;
    REAL second = -(REAL)INFINITY;

    for (size_t c = group * width; c < (group + 1) * width; c++) {
        REAL value = choice(t, x, c);
        if (value > best) {
            second = best;
            best = value;
        } else if (value > second) {
            second = value;
        }
    }
    return t->group_best == 2 ? best + second : best;
}

/* Fewer groups are better than there are places. */
static bool group_is_kept(const sw_top_k_args *t, const REAL *x, size_t group)
{
    REAL score = group_score(t, x, group);
    size_t n_better = 0;

    for (size_t g = 0; g < t->n_groups; g++) {
        REAL other = group_score(t, x, g);
        n_better += other > score || (other == score && g < group);
    }
    return n_better < t->n_kept;
}

/* The largest of columns begin .. end - 1 and of the n that are there, kept in order: count is small. */
static size_t keep_largest(const sw_top_k_args *t, const REAL *x, size_t begin, size_t end, int32_t *indices,
                           size_t n)
{
    for (size_t c = begin; c < end; c++) {
        REAL value = choice(t, x, c);
        size_t at = n;
        while (at > 0 && value > choice(t, x, (size_t)indices[at - 1]))
            at--;
        if (at == t->count)
            continue;
        n += n < t->count;
        memmove(indices + at + 1, indices + at, (n - at - 1) * sizeof *indices);
        indices[at] = (int32_t)c;
    }
    return n;
}

static void top_k(const void *args, size_t begin, size_t end)
{
    const sw_top_k_args *t = args;
    size_t n_groups = t->n_groups < 2 ? 1 : t->n_groups;
    size_t width = t->width / n_groups;

    for (size_t r = begin; r < end; r++) {
        const REAL *x = (const REAL *)t->x + r * t->width;
        int32_t *indices = t->indices + r * t->count;
        size_t n = 0;
        for (size_t g = 0; g < n_groups; g++) {
            if (n_groups == 1 || group_is_kept(t, x, g))
                n = keep_largest(t, x, g * width, (g + 1) * width, indices, n);
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
