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
    if (end - r >= 3) {
        tile_part(t, r, c, 3, vectors);
        return 3;
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
    const float *b = (const float *)p->b + at;

    if (is_bf16)
        return v_load_bf16_first((const uint16_t *)p->b + at, n);
    return n >= LANES ? v_load_stream(b) : v_load_first(b, n);
}

INLINE void put_sum(const sw_product *p, size_t r, size_t j, float sum)
{
    float *c = (float *)p->c + r * p->c_stride + j;
    float base = p->accumulate ? *c : 0;
    *c = base + sum + (p->bias == NULL ? 0 : ((const float *)p->bias)[j]);
}

/* Sums along K for each of `rows` rows, so that multiply-adds overlap: what the registers hold. */
INLINE size_t chains_of(size_t rows)
{
    return rows == 1 ? 6 : rows == 2 ? 4 : 2;
}

INLINE float sum_of_chains(const vf *sums, size_t chains)
{
    vf sum = sums[0];

    UNROLL
    for (size_t u = 1; u < chains; u++)
        sum = sum + sums[u];
    return v_sum(sum);
}

/* `rows` rows of A by stored row j of B, which is one stream of memory: several of them would be slower. */
INLINE void dot_row(const sw_product *p, size_t j, size_t rows)
{
    enum { CHAINS = 6 };
    vf sums[SW_PRODUCT_FEW_ROWS][CHAINS];
    size_t chains = chains_of(rows);
    const float *a = p->a;
    const float *b = (const float *)p->b + j * p->b_stride;
    size_t k = 0;

    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t u = 0; u < chains; u++)
            sums[i][u] = v_set(0);
    }
    for (; p->k - k >= chains * LANES; k += chains * LANES) {
        UNROLL
        for (size_t u = 0; u < chains; u++) {
            size_t at = k + u * LANES;
            vf w = v_load_stream(b + at);
            UNROLL
            for (size_t i = 0; i < rows; i++)
                sums[i][u] = v_fma(w, v_load(a + i * p->a_stride + at), sums[i][u]);
        }
    }
    UNROLL
    for (size_t u = 0; u < chains; u++) { /* what is left, a vector to each sum */
        size_t at = k + u * LANES;
        if (at >= p->k)
            break;
        vf w = v_load_first(b + at, p->k - at);
        UNROLL
        for (size_t i = 0; i < rows; i++)
            sums[i][u] = v_fma(w, v_load_first(a + i * p->a_stride + at, p->k - at), sums[i][u]);
    }
    UNROLL
    for (size_t i = 0; i < rows; i++)
        put_sum(p, i, j, sum_of_chains(sums[i], chains));
}

/* `rows` rows of A by two stored rows of B: vectors whose elements are to be added up. */
INLINE void dot_two(const sw_product *p, const float *first, const float *second, size_t rows,
                    vf (*out)[LANES], size_t to)
{
    const float *a = p->a;
    vf sums[SW_PRODUCT_FEW_ROWS][2];
    size_t k = 0;

    UNROLL
    for (size_t i = 0; i < rows; i++)
        sums[i][0] = sums[i][1] = v_set(0);
    for (; p->k - k >= LANES; k += LANES) {
        vf w = v_load_stream(first + k);
        vf next = v_load_stream(second + k);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vf x = v_load(a + i * p->a_stride + k);
            sums[i][0] = v_fma(w, x, sums[i][0]);
            sums[i][1] = v_fma(next, x, sums[i][1]);
        }
    }
    if (k < p->k) {
        vmask left = v_first(p->k - k);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vf x = v_load_masked(a + i * p->a_stride + k, left);
            sums[i][0] = v_fma(v_load_masked(first + k, left), x, sums[i][0]);
            sums[i][1] = v_fma(v_load_masked(second + k, left), x, sums[i][1]);
        }
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        out[i][to] = sums[i][0];
        out[i][to + 1] = sums[i][1];
    }
}

/*
 * The same by n stored rows, at most LANES, that are so short that adding up is most of the work. The bits of
 * a sum do not depend on what else is asked for.
 */
INLINE void dot_short(const sw_product *p, size_t j, size_t n, size_t rows)
{
    vf sums[SW_PRODUCT_FEW_ROWS][LANES];

    if (n < LANES)
        memset(sums, 0, rows * sizeof sums[0]);
    for (size_t i = 0; i < n; i += 2) {
        const float *b = (const float *)p->b + (j + i) * p->b_stride;
        dot_two(p, b, i + 1 < n ? b + p->b_stride : b, rows, sums, i);
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        float *c = (float *)p->c + i * p->c_stride + j;
        vf base = p->accumulate ? v_load_first(c, n) : v_set(0);
        vf bias = p->bias == NULL ? v_set(0) : v_load_first((const float *)p->bias + j, n);
        v_store_first(c, base + v_sums(sums[i]) + bias, n);
    }
}

/* A vector of pairs of B, those from `at` on, by the even and odd elements of each row of A: sums u, u + 1.
 */
INLINE void add_pairs(const sw_product *p, vpairs pairs, size_t at, size_t rows, vf (*sums)[8], size_t u)
{
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        const float *a = (const float *)p->a + i * p->a_stride + sw_split_place(2 * at);
        sums[i][u] = v_fma(v_even_of(pairs), v_load(a), sums[i][u]);
        sums[i][u + 1] = v_fma(v_odd_of(pairs), v_load(a + SW_SPLIT_PAIRS), sums[i][u + 1]);
    }
}

/* The last elements of a row of B, fewer than 2 * LANES, from pair `at` on. */
INLINE vpairs last_pairs(const sw_product *p, const uint16_t *b, size_t at)
{
    uint16_t some[2 * LANES] = {0};

    memcpy(some, b + 2 * at, (p->k - 2 * at) * sizeof *b);
    return v_load_pairs(some);
}

/* dot_row() for B of BF16 and A split: a pair of B then takes a shift and a mask to be two floats. */
INLINE void dot_pairs(const sw_product *p, size_t j, size_t rows)
{
    enum { CHAINS = 8 };
    vf sums[SW_PRODUCT_FEW_ROWS][CHAINS];
    size_t chains = rows <= 2 ? 4 : 2;
    size_t step = chains / 2 * LANES;
    size_t whole = p->k / 2; /* pairs */
    const uint16_t *b = (const uint16_t *)p->b + j * p->b_stride;
    size_t at = 0;

    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t u = 0; u < chains; u++)
            sums[i][u] = v_set(0);
    }
    for (; whole - at >= step; at += step) {
        UNROLL
        for (size_t u = 0; u < chains; u += 2) {
            size_t first = at + u / 2 * LANES;
            add_pairs(p, v_load_pairs(b + 2 * first), first, rows, sums, u);
        }
    }
    for (; whole - at >= LANES; at += LANES)
        add_pairs(p, v_load_pairs(b + 2 * at), at, rows, sums, 0);
    if (2 * at < p->k)
        add_pairs(p, last_pairs(p, b, at), at, rows, sums, 0);
    UNROLL
    for (size_t i = 0; i < rows; i++)
        put_sum(p, i, j, sum_of_chains(sums[i], chains));
}

INLINE void dot_columns(const sw_product *p, int is_bf16, size_t begin, size_t end, size_t rows)
{
    enum { SHORT = 256 };

    if (!is_bf16 && p->k <= SHORT) {
        for (size_t j = begin; j < end; j += LANES)
            dot_short(p, j, end - j < LANES ? end - j : LANES, rows);
        return;
    }
    for (size_t j = begin; j < end; j++) {
        if (is_bf16)
            dot_pairs(p, j, rows);
        else
            dot_row(p, j, rows);
    }
}

INLINE void row_product_of(const sw_product *p, int is_bf16, size_t begin, size_t end)
{
    switch (p->m) { /* a constant in each of the loops */
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
    row_product_of(&copy, 0, begin, end);
}

static void row_product_bf16(const void *args, size_t begin, size_t end)
{
    const sw_product copy = *(const sw_product *)args;
    row_product_of(&copy, 1, begin, end);
}

/* Vectors of one row whose sums stay in registers: the more, the longer the reads between two stores. */
#if SW_VECTOR == 16
enum { ADD_VECTORS = 8 };
#else
enum { ADD_VECTORS = 12 };
#endif

/* The first `left` columns of `vectors` vectors: element at of B times `a` of each row, added to C from j on.
 */
INLINE void add_part(const sw_product *p, int is_bf16, const vf *a, size_t at, size_t j, size_t left,
                     size_t rows, size_t vectors)
{
    vf sums[SW_PRODUCT_FEW_ROWS][ADD_VECTORS];
    float *c = (float *)p->c + j;

    UNROLL
    for (size_t v = 0; v < vectors; v++) {
        vf w = load_b(p, is_bf16, at + v * LANES, left);
        UNROLL
        for (size_t i = 0; i < rows; i++)
            sums[i][v] = v_fma(a[i], w, v_load_first(c + i * p->c_stride + v * LANES, left));
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t v = 0; v < vectors; v++)
            v_store_first(c + i * p->c_stride + v * LANES, sums[i][v], left);
    }
}

/* Rows of B, stored [K, N], one after the other: one stream of memory, while C stays in the cache. */
INLINE void add_rows(const sw_product *p, int is_bf16, size_t begin, size_t end, size_t rows)
{
    size_t vectors = rows == 1 ? ADD_VECTORS : 2;

    for (size_t k = 0; k < p->k; k++) {
        vf a[SW_PRODUCT_FEW_ROWS];
        size_t at = k * p->b_stride;
        size_t j = begin;
        UNROLL
        for (size_t i = 0; i < rows; i++)
            a[i] = v_set(((const float *)p->a)[i * p->a_stride + k]);
        for (; end - j >= vectors * LANES; j += vectors * LANES)
            add_part(p, is_bf16, a, at + j, j, LANES, rows, vectors);
        for (; j < end; j += LANES)
            add_part(p, is_bf16, a, at + j, j, end - j, rows, 1);
    }
}

INLINE void in_out_of(const sw_product *p, int is_bf16, size_t begin, size_t end)
{
    switch (p->m) { /* a constant in each of the loops */
    case 1:
        add_rows(p, is_bf16, begin, end, 1);
        break;
    case 2:
        add_rows(p, is_bf16, begin, end, 2);
        break;
    case 3:
        add_rows(p, is_bf16, begin, end, 3);
        break;
    default:
        add_rows(p, is_bf16, begin, end, 4);
        break;
    }
}

static void row_product_in_out(const void *args, size_t begin, size_t end)
{
    const sw_product copy = *(const sw_product *)args;
    const sw_product *p = &copy;
    const float *bias = p->bias;

    for (size_t r = 0; r < p->m; r++) {
        float *c = (float *)p->c + r * p->c_stride;
        for (size_t j = begin; j < end; j += LANES) {
            vf base = p->accumulate ? v_load_first(c + j, end - j) : v_set(0);
            vf more = bias == NULL ? v_set(0) : v_load_first(bias + j, end - j);
            v_store_first(c + j, base + more, end - j);
        }
    }
    if (p->b_type == SW_DTYPE_BF16)
        in_out_of(p, 1, begin, end);
    else
        in_out_of(p, 0, begin, end);
}
