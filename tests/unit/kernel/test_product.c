/* Matrix products of every form against one loop in F64: variants, ways, packing, threads, refusals. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/short_float.h"
#include "base/status.h"
#include "kernel/probe.h"
#include "kernel/product.h"
#include "kernel_op.h"

/* A product with matrices of its own, F32 or F64 as `c_type`; BF16 ones beside them. */
typedef struct made {
    sw_product p;
    sw_dtype dtype;
    size_t sizes[4]; /* elements of A, B, C, bias */
    void *arrays[4];
    uint16_t *shorts[2];
    double *expected; /* [M, N, 2]: the number, and the sum of sizes that went in */
} made;

static double value_at(sw_dtype dtype, const void *values, size_t i)
{
    return dtype == SW_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static size_t random_size(gen *g, uint32_t most)
{
    static const size_t edges[] = {0, 1, 2, 4, 5, 6, 7, 15, 16, 17, 63, 64, 65};
    return gen_below(g, 3) == 0 ? edges[gen_below(g, SW_COUNT(edges))] : gen_below(g, most);
}

static void round_to_bf16(float *values, uint16_t *shorts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        shorts[i] = sw_bf16_of_float(values[i]);
        values[i] = sw_float_of_bf16(shorts[i]);
    }
}

static void expect(made *m)
{
    const sw_product *p = &m->p;

    for (size_t r = 0; r < p->m; r++) {
        for (size_t c = 0; c < p->n; c++) {
            double sum = p->accumulate ? value_at(m->dtype, m->arrays[2], r * p->c_stride + c) : 0;
            double size = 30;
            for (size_t k = 0; k < p->k; k++) {
                size_t a = p->a_is_transposed ? k * p->a_stride + r : r * p->a_stride + k;
                size_t b = p->b_is_transposed ? c * p->b_stride + k : k * p->b_stride + c;
                double term = value_at(m->dtype, m->arrays[0], a) * value_at(m->dtype, m->arrays[1], b);
                sum += term;
                size += fabs(term);
            }
            m->expected[2 * (r * p->n + c)] =
                sum + (p->bias == NULL ? 0 : value_at(m->dtype, m->arrays[3], c));
            m->expected[2 * (r * p->n + c) + 1] = size;
        }
    }
}

/* Which types the case has: 0 F32, 1 F64, 2 BF16, 3 F32 by BF16. */
static void make(made *m, gen *g, uint32_t types)
{
    sw_product *p = &m->p;

    *m = (made){.dtype = types == 1 ? SW_DTYPE_F64 : SW_DTYPE_F32};
    *p = (sw_product){.m = random_size(g, 60),
                      .n = random_size(g, 300),
                      .k = random_size(g, 300),
                      .a_is_transposed = gen_below(g, 3) == 0,
                      .b_is_transposed = gen_below(g, 2) == 0,
                      .accumulate = gen_below(g, 2) == 0};
    if (gen_below(g, 8) == 0)
        p->m = 380 + gen_below(g, 10);
    size_t gap = gen_below(g, 2) == 0 ? 0 : gen_below(g, 5);
    p->a_stride = (p->a_is_transposed ? p->m : p->k) + gap;
    p->b_stride = (p->b_is_transposed ? p->k : p->n) + gap;
    p->c_stride = p->n + gap;
    m->sizes[0] = (p->a_is_transposed ? p->k : p->m) * p->a_stride;
    m->sizes[1] = (p->b_is_transposed ? p->n : p->k) * p->b_stride;
    m->sizes[2] = p->m * p->c_stride;
    m->sizes[3] = p->n;
    for (size_t i = 0; i < 4; i++) {
        m->arrays[i] = guarded_alloc(m->dtype, m->sizes[i]);
        gen_fill(g, m->dtype, m->arrays[i], m->sizes[i]);
    }
    p->a = m->arrays[0];
    p->b = m->arrays[1];
    p->c = m->arrays[2];
    p->bias = gen_below(g, 2) == 0 ? m->arrays[3] : NULL;
    p->a_type = p->b_type = p->c_type = m->dtype;
    for (size_t i = 0; i < 2; i++) {
        if (types < 2 || (types == 3 && i == 0))
            continue;
        m->shorts[i] = malloc(m->sizes[i] * sizeof(uint16_t) + 1);
        assert_non_null(m->shorts[i]);
        round_to_bf16(m->arrays[i], m->shorts[i], m->sizes[i]);
        *(i == 0 ? &p->a : &p->b) = m->shorts[i];
        *(i == 0 ? &p->a_type : &p->b_type) = SW_DTYPE_BF16;
    }
    m->expected = malloc(p->m * p->n * 2 * sizeof(double) + 1);
    assert_non_null(m->expected);
    expect(m);
}

static bool clear(made *m)
{
    bool is_whole = true;

    for (size_t i = 0; i < 4; i++)
        is_whole = guarded_free(m->arrays[i], m->dtype, m->sizes[i]) && is_whole;
    free(m->shorts[0]);
    free(m->shorts[1]);
    free(m->expected);
    return is_whole;
}

/* Run, B packed first if wanted; the arguments hold for the next run too. */
static void run(sw_kernel *kernel, sw_product *p, bool is_packed)
{
    sw_error err = {0};
    size_t n_bytes = 0;
    void *packed = NULL;

    if (is_packed) {
        if (sw_product_packed_bytes(kernel, p, &n_bytes, &err) != SW_OK)
            fail_msg("%s", err.what);
        packed = aligned_alloc(64, (n_bytes + 64) / 64 * 64);
        assert_non_null(packed);
        if (sw_product_pack(kernel, p, packed, &err) != SW_OK)
            fail_msg("%s", err.what);
        p->b = packed;
        p->b_is_packed = true;
    }
    if (sw_product_workspace(kernel, p, &n_bytes, &err) != SW_OK)
        fail_msg("%s", err.what);
    void *workspace = malloc(n_bytes + 1);
    assert_non_null(workspace);
    sw_alloc_fail_at(1); /* nothing of ours is allocated when the shape was seen */
    sw_status status = sw_product_run(kernel, p, workspace, &err);
    sw_alloc_fail_at(0);
    if (status != SW_OK)
        fail_msg("%s", err.what);
    free(workspace);
    free(packed);
}

/* A is rounded once more where F32 meets BF16 in many rows. */
static bool is_near(const made *m, uint32_t types, const char *name)
{
    const sw_product *p = &m->p;
    bool is_for_library = p->m > SW_PRODUCT_FEW_ROWS || p->a_is_transposed || p->b_is_packed;
    double limit = types == 1 ? 1e-14 : types == 3 && is_for_library ? 4e-3 : 1e-6;

    for (size_t r = 0; r < p->m; r++) {
        for (size_t c = 0; c < p->n; c++) {
            double got = value_at(m->dtype, m->arrays[2], r * p->c_stride + c);
            double expected = m->expected[2 * (r * p->n + c)];
            if (fabs(got - expected) <= limit * m->expected[2 * (r * p->n + c) + 1])
                continue;
            (void)fprintf(
                stderr,
                "%s, types %u: [%zu, %zu] of %zu x %zu x %zu is %g and not %g (transposed %d %d, add %d)\n",
                name, types, r, c, p->m, p->n, p->k, got, expected, p->a_is_transposed, p->b_is_transposed,
                p->accumulate);
            return false;
        }
    }
    return true;
}

static bool every_way_is_right(gen *g)
{
    bool is_right = true;
    uint32_t types = gen_below(g, 4);
    bool is_packed = gen_below(g, 3) == 0;
    uint32_t n_threads = gen_between(g, 1, 2);

    for (sw_kernel_variant v = SW_KERNEL_REFERENCE; v < SW_KERNEL_VARIANT_COUNT_; v++) {
        if (!sw_kernel_variant_runs(v))
            continue;
        gen same = *g;
        made m;
        sw_kernel *kernel = kernel_of(v, n_threads);
        make(&m, &same, types);
        run(kernel, &m.p, is_packed);
        is_right = is_near(&m, types, sw_kernel_variant_name(v)) && is_right;
        is_right = clear(&m) && is_right;
        sw_kernel_destroy(kernel);
    }
    return is_right;
}

static void every_form_of_a_product_is_the_plain_sum(void **state)
{
    (void)state;
    assert_true(gen_holds(every_way_is_right, 120));
}

/* The loops of ours: rows of decode, and tiles, which F64 and the reference use. */
static bool our_bits_ignore_threads(gen *g)
{
    bool is_f64 = gen_below(g, 2) == 0;
    made m[3];

    for (uint32_t n = 0; n < 3; n++) {
        gen same = *g;
        sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, n + 1);
        make(&m[n], &same, is_f64 ? 1 : 3);
        if (!is_f64 && m[n].p.m > SW_PRODUCT_FEW_ROWS)
            m[n].p.m = SW_PRODUCT_FEW_ROWS;
        if (is_f64 || !m[n].p.a_is_transposed) /* the library's way otherwise */
            run(kernel, &m[n].p, false);
        sw_kernel_destroy(kernel);
    }
    bool is_right = true;
    for (uint32_t n = 1; n < 3; n++) {
        size_t bytes = m[0].sizes[2] * (is_f64 ? 8 : 4);
        is_right = memcmp(m[0].arrays[2], m[n].arrays[2], bytes) == 0 && is_right;
    }
    for (uint32_t n = 0; n < 3; n++)
        is_right = clear(&m[n]) && is_right;
    return is_right;
}

static void loops_of_ours_give_the_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    assert_true(gen_holds(our_bits_ignore_threads, 60));
}

/* More shapes than the table of products has room for, each twice. */
/* ---- together ---- */

/* Random products of one A, by matrices that follow one another in memory, C's too. */
typedef struct shared {
    sw_product p[SW_PRODUCTS_TOGETHER];
    size_t n;
    sw_dtype dtype;
    size_t a_elems;
    size_t b_elems;
    size_t c_elems;
    void *a;
    void *b;
    void *c;
} shared;

static void make_shared(shared *s, gen *g)
{
    static const sw_dtype types[][2] = {
        {SW_DTYPE_F32, SW_DTYPE_F32 },
        {SW_DTYPE_F64, SW_DTYPE_F64 },
        {SW_DTYPE_F32, SW_DTYPE_BF16}
    };
    const sw_dtype *type = types[gen_below(g, 3)];
    size_t m = gen_below(g, 5);
    size_t k = random_size(g, 300);

    *s = (shared){.n = gen_below(g, SW_PRODUCTS_TOGETHER + 1), .dtype = type[0], .a_elems = m * k};
    for (size_t i = 0; i < s->n; i++) {
        s->p[i] = (sw_product){m, random_size(g, 200), k, .b_is_transposed = true};
        s->p[i].a_type = s->p[i].c_type = type[0];
        s->p[i].b_type = type[1];
        s->p[i].accumulate = gen_below(g, 2) == 0;
        s->b_elems += s->p[i].n * k;
        s->c_elems += m * s->p[i].n;
    }
    s->a = guarded_alloc(s->dtype, s->a_elems);
    s->b = guarded_alloc(s->dtype, s->b_elems);
    s->c = guarded_alloc(s->dtype, s->c_elems);
    gen_fill(g, s->dtype, s->a, s->a_elems);
    gen_fill(g, s->dtype, s->b, s->b_elems);
    if (type[1] == SW_DTYPE_BF16) {
        for (size_t i = 0; i < s->b_elems; i++)
            ((uint16_t *)s->b)[i] = sw_bf16_of_float(((float *)s->b)[i]);
    }
    size_t c_at = 0;
    size_t b_at = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t width = type[0] == SW_DTYPE_F64 ? 8 : 4;
        s->p[i].a = s->a;
        s->p[i].b = (char *)s->b + b_at * (type[1] == SW_DTYPE_BF16 ? 2 : width);
        s->p[i].c = (char *)s->c + c_at * width;
        s->p[i].bias = m > 0 && k >= s->p[i].n && gen_below(g, 2) == 0 ? s->a : NULL;
        b_at += s->p[i].n * k;
        c_at += m * s->p[i].n;
    }
    memset(s->c, 0, s->c_elems * (type[0] == SW_DTYPE_F64 ? 8 : 4));
}

static void run_together(sw_kernel *kernel, const shared *s)
{
    sw_error err = {0};
    size_t n_bytes = 0;

    if (s->n > 0 && sw_product_workspace(kernel, s->p, &n_bytes, &err) != SW_OK)
        fail_msg("%s", err.what);
    void *workspace = malloc(n_bytes + 1);
    assert_non_null(workspace);
    if (sw_product_run_together(kernel, s->p, s->n, workspace, &err) != SW_OK)
        fail_msg("%s", err.what);
    free(workspace);
}

static bool together_is_alone(gen *g)
{
    shared s;
    bool is_right = true;
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, gen_between(g, 1, 5));

    make_shared(&s, g);
    size_t bytes = s.c_elems * (s.dtype == SW_DTYPE_F64 ? 8 : 4);
    char *alone = malloc(bytes + 1);
    assert_non_null(alone);
    for (int i = 0; i < 2; i++) { /* what is there may be added to */
        for (size_t k = 0; k < s.n; k++)
            run(kernel, &s.p[k], false);
    }
    memcpy(alone, s.c, bytes);
    memset(s.c, 0, bytes);
    for (int i = 0; i < 2; i++)
        run_together(kernel, &s);
    is_right = memcmp(alone, s.c, bytes) == 0;
    free(alone);
    sw_kernel_destroy(kernel);
    is_right = guarded_free(s.a, s.dtype, s.a_elems) && is_right;
    is_right = guarded_free(s.b, s.dtype, s.b_elems) && is_right;
    return guarded_free(s.c, s.dtype, s.c_elems) && is_right;
}

static void products_together_give_what_each_gives_alone(void **state)
{
    (void)state;
    assert_true(gen_holds(together_is_alone, 150));
}

static void what_cannot_be_run_together_is_refused(void **state)
{
    float a[2][8] = {{0}};
    sw_product p[SW_PRODUCTS_TOGETHER + 1] = {
        {.m = 1, .n = 1, .k = 8, .a = a, .b_is_transposed = true}
    };
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_error err = {0};

    (void)state;
    p[0].a_type = p[0].b_type = p[0].c_type = SW_DTYPE_F32;
    p[1] = p[0];
    p[1].a = a[1];
    assert_int_equal(sw_product_run_together(kernel, p, 2, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "product 1 of those together has another A, or many rows");
    p[0].m = p[1].m = SW_PRODUCT_FEW_ROWS + 1;
    assert_int_equal(sw_product_run_together(kernel, p, 1, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "product 0 of those together has another A, or many rows");
    assert_int_equal(sw_product_run_together(kernel, p, SW_PRODUCTS_TOGETHER + 1, NULL, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "5 products together are more than 4");
    sw_kernel_destroy(kernel);
}

static void shapes_beyond_the_table_push_the_oldest_out(void **state)
{
    enum { N = 24, SHAPES = 800 };
    static float a[SHAPES * 3];
    static float b[N * 3];
    static float c[SHAPES * N];
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    (void)state;
    for (size_t i = 0; i < SW_COUNT(a); i++)
        a[i] = 1;
    for (size_t i = 0; i < SW_COUNT(b); i++)
        b[i] = (float)i;
    for (size_t i = 0; i < (size_t)2 * SHAPES; i++) {
        sw_product p = {.m = SW_PRODUCT_FEW_ROWS + 1 + i % (SHAPES - 5),
                        .n = N,
                        .k = 3,
                        .a = a,
                        .b = b,
                        .c = c,
                        .a_type = SW_DTYPE_F32,
                        .b_type = SW_DTYPE_F32,
                        .c_type = SW_DTYPE_F32};
        c[(p.m - 1) * N] = -1;
        run(kernel, &p, false);
        assert_true(c[(p.m - 1) * N] == 0 + N + 2 * N);
    }
    sw_kernel_destroy(kernel);
}

static void refuse(sw_product p, sw_status status, const char *what)
{
    sw_error err = {0};
    size_t n_bytes = 77;
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);

    assert_int_equal(sw_product_workspace(kernel, &p, &n_bytes, &err), status);
    assert_string_equal(err.what, what);
    assert_int_equal(n_bytes, 77);
    assert_int_equal(sw_product_run(kernel, &p, NULL, &err), status);
    sw_kernel_destroy(kernel);
}

static void what_is_no_product_is_refused(void **state)
{
    sw_product p = {
        .m = 5, .n = 6, .k = 7, .a_type = SW_DTYPE_F32, .b_type = SW_DTYPE_F32, .c_type = SW_DTYPE_F32};

    (void)state;
    p.b_type = SW_DTYPE_F64;
    char text[80];
    (void)snprintf(text, sizeof text, "no product of types (%d, %d) into %d", SW_DTYPE_F32, SW_DTYPE_F64,
                   SW_DTYPE_F32);
    refuse(p, SW_E_ARGUMENT, text);
    p.b_type = SW_DTYPE_F32;
    p.b_stride = 5;
    refuse(p, SW_E_ARGUMENT, "product: rows of B are 6 wide and only 5 apart");
    p.b_is_transposed = true;
    refuse(p, SW_E_ARGUMENT, "product: rows of B are 7 wide and only 5 apart");
    p.b_stride = 0;
    p.m = SIZE_MAX / 8;
    refuse(p, SW_E_LIMIT, "product: A of 2305843009213693951 rows of 7 is too large");
}

/* A context that could not get memory is as good as new. */
static void a_failed_allocation_is_reported_and_leaves_nothing(void **state)
{
    float a[8 * 3] = {1};
    float b[3 * 4] = {1};
    float c[8 * 4];
    sw_product p = {.m = 8,
                    .n = 4,
                    .k = 3,
                    .a = a,
                    .b = b,
                    .c = c,
                    .a_type = SW_DTYPE_F32,
                    .b_type = SW_DTYPE_F32,
                    .c_type = SW_DTYPE_F32};
    sw_kernel *kernel = kernel_of(SW_KERNEL_BEST, 1);
    sw_error err = {0};
    size_t n_bytes = 0;
    int64_t alive = sw_alloc_live();

    (void)state;
    if (sw_probe_library_name() != NULL && sw_kernel_variant_of(kernel) != SW_KERNEL_REFERENCE) {
        sw_alloc_fail_at(1);
        assert_int_equal(sw_product_workspace(kernel, &p, &n_bytes, &err), SW_E_NO_MEMORY);
        sw_alloc_fail_at(0);
        assert_int_equal(sw_alloc_live(), alive);
    }
    run(kernel, &p, false);
    assert_true(c[0] == 1 && c[1] == 0);
    sw_kernel_destroy(kernel);
    assert_int_equal(sw_alloc_live(), alive - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_product_is_the_plain_sum),
        cmocka_unit_test(loops_of_ours_give_the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(products_together_give_what_each_gives_alone),
        cmocka_unit_test(what_cannot_be_run_together_is_refused),
        cmocka_unit_test(shapes_beyond_the_table_push_the_oldest_out),
        cmocka_unit_test(what_is_no_product_is_refused),
        cmocka_unit_test(a_failed_allocation_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
