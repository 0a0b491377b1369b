/* Vector loops of products, for avx2.c and avx512.c. */

/* Rows and vectors of a tile whose sums stay in registers. */
#if SW_VECTOR == 16
enum { TILE_ROWS = 6, TILE_VECTORS = 4 };
#else
enum { TILE_ROWS = 4, TILE_VECTORS = 3 };
#endif

/* rows x vectors of C from column c on; the last vector is masked. */
INLINE void tile_part(const sw_tile_args *t, size_t r, size_t c, size_t rows, size_t vectors)
{
    vf sums[TILE_ROWS][TILE_VECTORS];
    const float *a = (const float *)t->a + r * t->a_row;
    const float *b = (const float *)t->b + c;
    float *out = (float *)t->c + r * t->c_row + c;
    size_t last = (vectors - 1) * LANES;
    vmask mask = v_first(t->n - c - last);

    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t v = 0; v < vectors; v++)
            sums[i][v] = v_set(0);
    }
    for (size_t k = 0; k < t->k; k++) {
        vf row[TILE_VECTORS];
        UNROLL
        for (size_t v = 0; v + 1 < vectors; v++)
            row[v] = v_load(b + v * LANES);
        row[vectors - 1] = v_load_masked(b + last, mask);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vf value = v_set(a[i * t->a_row]);
            UNROLL
            for (size_t v = 0; v < vectors; v++)
                sums[i][v] = v_fma(value, row[v], sums[i][v]);
        }
        a += t->a_column;
        b += t->b_row;
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        float *to = out + i * t->c_row;
        UNROLL
        for (size_t v = 0; v < vectors; v++) {
            vmask all = v + 1 < vectors ? v_first(LANES) : mask;
            vf base = t->accumulate ? v_load_masked(to + v * LANES, all) : v_set(0);
            v_store_masked(to + v * LANES, base + sums[i][v], all);
        }
    }
}

/* The number of rows as a constant. */
INLINE size_t tile_rows(const sw_tile_args *t, size_t r, size_t end, size_t c, size_t vectors)
{
    if (end - r >= TILE_ROWS) {
        tile_part(t, r, c, TILE_ROWS, vectors);
        return TILE_ROWS;
    }
    if (end - r >= 2) {
        tile_part(t, r, c, 2, vectors);
        return 2;
    }
    tile_part(t, r, c, 1, vectors);
    return 1;
}

static void tile(const void *args, size_t begin, size_t end)
{
    const sw_tile_args copy = *(const sw_tile_args *)args;
    const sw_tile_args *t = &copy;

    for (size_t c = 0; c < t->n; c += TILE_VECTORS * LANES) {
        size_t vectors = (t->n - c + LANES - 1) / LANES;
        for (size_t r = begin; r < end;) {
            if (vectors >= TILE_VECTORS)
                r += tile_rows(t, r, end, c, TILE_VECTORS);
            else if (vectors == 1)
                r += tile_rows(t, r, end, c, 1);
            else if (vectors == 2)
                r += tile_rows(t, r, end, c, 2);
            else
                r += tile_rows(t, r, end, c, 3);
        }
    }
}

INLINE vf load_b(const sw_product *p, int is_bf16, size_t at, size_t n)
{
    return is_bf16 ? v_load_bf16_first((const uint16_t *)p->b + at, n)
                   : v_load_first((const float *)p->b + at, n);
}

INLINE void put_sum(const sw_product *p, size_t r, size_t j, float sum)
{
    float *c = (float *)p->c + r * p->c_stride + j;
    float base = p->accumulate ? *c : 0;
    *c = base + sum + (p->bias == NULL ? 0 : ((const float *)p->bias)[j]);
}

/*
 * `rows` rows of A by stored row j of B, which is one stream of memory; CHAINS sums along K for each, so that
 * multiply-adds overlap.
 */
INLINE void dot_row(const sw_product *p, int is_bf16, size_t j, size_t rows)
{
    enum { CHAINS = 4 };
    vf sums[SW_PRODUCT_FEW_ROWS][CHAINS];
    const float *a = p->a;
    size_t b = j * p->b_stride;
    size_t k = 0;

    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t u = 0; u < CHAINS; u++)
            sums[i][u] = v_set(0);
    }
    for (; p->k - k >= CHAINS * LANES; k += CHAINS * LANES) {
        UNROLL
        for (size_t u = 0; u < CHAINS; u++) {
            size_t at = k + u * LANES;
            vf w = load_b(p, is_bf16, b + at, LANES);
            UNROLL
            for (size_t i = 0; i < rows; i++)
                sums[i][u] = v_fma(w, v_load(a + i * p->a_stride + at), sums[i][u]);
        }
    }
    for (; k < p->k; k += LANES) {
        vf w = load_b(p, is_bf16, b + k, p->k - k);
        UNROLL
        for (size_t i = 0; i < rows; i++)
            sums[i][0] = v_fma(w, v_load_first(a + i * p->a_stride + k, p->k - k), sums[i][0]);
    }
    UNROLL
    for (size_t i = 0; i < rows; i++)
        put_sum(p, i, j, v_sum((sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3])));
}

INLINE void dot_columns(const sw_product *p, int is_bf16, size_t begin, size_t end, size_t rows)
{
    for (size_t j = begin; j < end; j++)
        dot_row(p, is_bf16, j, rows);
}

INLINE void row_product_of(const sw_product *p, int is_bf16, size_t begin, size_t end)
{
    switch (p->m) {
    case 1:
        dot_columns(p, is_bf16, begin, end, 1);
        break;
    case 2:
        dot_columns(p, is_bf16, begin, end, 2);
        break;
    case 3:
        dot_columns(p, is_bf16, begin, end, 3);
        break;
    default:
        dot_columns(p, is_bf16, begin, end, 4);
        break;
    }
}

static void row_product(const void *args, size_t begin, size_t end)
{
    const sw_product copy = *(const sw_product *)args;
    const sw_product *p = &copy;

    if (p->b_type == SW_DTYPE_BF16)
        row_product_of(p, 1, begin, end);
    else
        row_product_of(p, 0, begin, end);
}

/* One row of A by B stored [K, N]: eight rows of B at a time are added to the columns begin .. end-1 of C. */
INLINE void add_rows(const sw_product *p, int is_bf16, size_t r, size_t begin, size_t end)
{
    const float *a = (const float *)p->a + r * p->a_stride;
    float *c = (float *)p->c + r * p->c_stride;
    size_t k = 0;

    for (; p->k - k >= 8; k += 8) {
        for (size_t j = begin; j < end; j += LANES) {
            vf sum = v_load_first(c + j, end - j);
            UNROLL
            for (size_t i = 0; i < 8; i++)
                sum = v_fma(v_set(a[k + i]), load_b(p, is_bf16, (k + i) * p->b_stride + j, end - j), sum);
            v_store_first(c + j, sum, end - j);
        }
    }
    for (; k < p->k; k++) {
        for (size_t j = begin; j < end; j += LANES) {
            vf w = load_b(p, is_bf16, k * p->b_stride + j, end - j);
            v_store_first(c + j, v_fma(v_set(a[k]), w, v_load_first(c + j, end - j)), end - j);
        }
    }
}

static void row_product_in_out(const void *args, size_t begin, size_t end)
{
    const sw_product copy = *(const sw_product *)args;
    const sw_product *p = &copy;
    const float *bias = p->bias;

    for (size_t r = 0; r < p->m; r++) {
        float *c = (float *)p->c + r * p->c_stride;
        for (size_t j = begin; j < end; j++)
            c[j] = (p->accumulate ? c[j] : 0) + (bias == NULL ? 0 : bias[j]);
        if (p->b_type == SW_DTYPE_BF16)
            add_rows(p, 1, r, begin, end);
        else
            add_rows(p, 0, r, begin, end);
    }
}
