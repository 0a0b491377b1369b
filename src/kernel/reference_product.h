/*
 * Reference loops of products for the type REAL, to be included by reference_f32.c and reference_f64.c. The
 * tile sums in REAL, in the order of K, so that it serves as the F64 product too.
 */

static void tile(const void *args, size_t begin, size_t end)
{
    const sw_tile_args *t = args;

    for (size_t r = begin; r < end; r++) {
        REAL *c = (REAL *)t->c + r * t->c_row;
        for (size_t j = 0; !t->accumulate && j < t->n; j++)
            c[j] = 0;
        for (size_t k = 0; k < t->k; k++) {
            REAL a = ((const REAL *)t->a)[r * t->a_row + k * t->a_column];
            const REAL *b = (const REAL *)t->b + k * t->b_row;
            for (size_t j = 0; j < t->n; j++)
                c[j] += a * b[j];
        }
    }
}

static double b_element(const sw_product *p, size_t at)
{
    return p->b_type == SW_DTYPE_BF16 ? (double)sw_float_of_bf16(((const uint16_t *)p->b)[at])
                                      : (double)((const REAL *)p->b)[at];
}

/* Items: columns of C. */
static void row_product_by(const sw_product *p, bool a_is_split, size_t begin, size_t end)
{
    for (size_t r = 0; r < p->m; r++) {
        const REAL *a = (const REAL *)p->a + r * p->a_stride;
        REAL *c = (REAL *)p->c + r * p->c_stride;
        for (size_t j = begin; j < end; j++) {
            double sum = p->accumulate ? (double)c[j] : 0;
            for (size_t k = 0; k < p->k; k++) {
                size_t at = p->b_is_transposed ? j * p->b_stride + k : k * p->b_stride + j;
                sum += (double)a[a_is_split ? sw_split_place(k) : k] * b_element(p, at);
            }
            c[j] = (REAL)(sum + (p->bias == NULL ? 0 : (double)((const REAL *)p->bias)[j]));
        }
    }
}

static void row_product(const void *args, size_t begin, size_t end)
{
    row_product_by(args, false, begin, end);
}

static void row_product_bf16(const void *args, size_t begin, size_t end)
{
    row_product_by(args, true, begin, end);
}
