/*
 * Attention over ranks in its three forms, in both orders of the sequence: outputs and gradients are those of
 * one rank that has all tokens, whatever is masked.
 */
#include "rank_case.h"

#include "parallel/attention.h"
#include "parallel/sequence.h"

typedef enum form { GATHER, RING, ULYSSES, FORMS } form;

typedef struct shape {
    const char *name;
    uint64_t batch;
    uint64_t tokens;
    uint64_t heads;
    uint64_t kv_heads;
    uint64_t width;
    uint64_t v_width;
    bool is_causal;
    uint32_t window;
    double soft_cap;
    bool has_slopes;
    bool has_sinks;
    uint64_t left_out; /* the first row has so many tokens of padding of its own at the end */
} shape;

static const shape shapes[] = {
    {"causal",             2, 24,  24, 24, 4, 4, true,  0,  0,   false, false, 0},
    {"uneven",             2, 13,  24, 24, 4, 4, true,  0,  0,   false, false, 0},
    {"one token",          1, 1,   24, 8,  4, 4, true,  0,  0,   false, true,  0},
    {"not causal",         1, 19,  24, 12, 3, 3, false, 0,  0,   false, false, 0},
    {"groups",             2, 17,  24, 4,  4, 4, true,  0,  0,   false, false, 0},
    {"one key head",       1, 22,  24, 1,  4, 4, true,  0,  0,   false, false, 0},
    {"three key heads",    1, 22,  24, 3,  4, 4, true,  0,  0,   false, false, 0},
    {"values narrower",    1, 21,  24, 8,  6, 3, true,  0,  0,   false, false, 0},
    {"window",             2, 37,  24, 8,  4, 4, true,  5,  0,   false, false, 0},
    {"window, not causal", 1, 37,  24, 8,  4, 4, false, 5,  0,   false, false, 0},
    {"soft cap",           1, 18,  24, 8,  4, 4, true,  0,  1.5, false, false, 0},
    {"slopes",             1, 18,  24, 8,  4, 4, true,  0,  0,   true,  false, 0},
    {"sinks",              2, 18,  24, 8,  4, 4, true,  0,  0,   false, true,  0},
    {"sinks and a window", 2, 31,  24, 8,  4, 4, true,  4,  0,   false, true,  0},
    {"rows with padding",  2, 26,  24, 8,  4, 4, true,  0,  0,   false, true,  9},
    {"everything",         2, 29,  24, 8,  4, 6, true,  11, 2,   true,  true,  7},
    {"more than a tile",   1, 130, 24, 2,  4, 4, true,  0,  0,   false, true,  0},
    {"window over tiles",  1, 130, 24, 2,  4, 4, true,  70, 0,   true,  false, 0},
};

RANK_CASE(c, open_ranks, close_ranks)
static sw_ring *ring;

static int open_case(void **state)
{
    int status = open_ranks(state);
    return sw_ring_create(&ring, c.group, NULL) == SW_OK ? status : -1;
}

static int close_case(void **state)
{
    sw_ring_destroy(ring);
    return close_ranks(state);
}

enum { Q, K, V, SINKS, TENSORS };

/* One attention: the tensors that have gradients, and what it gives. */
typedef struct attention {
    sw_tensor *in[TENSORS];
    sw_attend_args args;
    sw_tensor *out;
    void *d_out;
} attention;

static uint64_t heads_of(const shape *s, int tensor)
{
    return tensor == Q ? s->heads : s->kv_heads;
}

static uint64_t width_of(const shape *s, int tensor)
{
    return tensor == V ? s->v_width : s->width;
}

static sw_tensor *of_heads(const shape *s, uint64_t seed, bool is_parameter)
{
    sw_tensor *x = rank_case_random(&c, 1, &s->heads, seed);

    if (!is_parameter)
        x->storage->needs_gradient = false;
    return x;
}

static void make_args(const shape *s, attention *a, uint64_t tokens)
{
    a->in[SINKS] = s->has_sinks ? of_heads(s, 77, true) : NULL;
    a->args = (sw_attend_args){
        .q_positions = rank_case_whole(&c, 2, (const uint64_t[]){s->batch, tokens}),
        .k_positions = rank_case_whole(&c, 2, (const uint64_t[]){s->batch, tokens}),
        .slopes = s->has_slopes ? of_heads(s, 78, false) : NULL,
        .sinks = a->in[SINKS],
        .scale = 0.7,
        .soft_cap = s->soft_cap,
        .window = s->window,
        .is_causal = s->is_causal,
    };
    for (int i = 0; i < SINKS; i++)
        a->in[i] =
            rank_case_tensor(&c, 4, (const uint64_t[]){s->batch, tokens, heads_of(s, i), width_of(s, i)});
    size_t n = (size_t)(s->batch * tokens * s->heads * s->v_width);
    a->d_out = sw_stack_take(sw_step_stack(c.step), (n + 1) * sw_elem_bytes(c.dtype));
    assert_non_null(a->d_out);
}

static bool is_padding(const shape *s, uint64_t row, uint64_t token)
{
    return token >= s->tokens || (row == 0 && token + s->left_out >= s->tokens);
}

/* Token `token` of the sequence is put at place `at`. Padding has numbers too: nobody may look at them. */
static void put_token(const shape *s, const attention *a, uint64_t row, uint64_t at, uint64_t token)
{
    uint64_t tokens = a->in[Q]->dims[1];
    int32_t position = is_padding(s, row, token) ? -1 : (int32_t)token;

    ((int32_t *)sw_tensor_data(a->args.q_positions))[row * tokens + at] = position;
    ((int32_t *)sw_tensor_data(a->args.k_positions))[row * tokens + at] = position;
    for (int i = 0; i < SINKS; i++) {
        uint64_t n = heads_of(s, i) * width_of(s, i);
        for (uint64_t j = 0; j < n; j++)
            number_set(c.dtype, sw_tensor_data(a->in[i]), (row * tokens + at) * n + j,
                       1.5 * random_at(100 + (uint64_t)i, (row * 1000 + token) * n + j));
    }
    uint64_t n = s->heads * s->v_width;
    for (uint64_t j = 0; j < n; j++)
        number_set(c.dtype, a->d_out, (row * tokens + at) * n + j,
                   position < 0 ? 0 : random_at(200, (row * 1000 + token) * n + j));
}

static void make_whole(const shape *s, attention *a)
{
    make_args(s, a, s->tokens);
    for (uint64_t i = 0; i < s->batch * s->tokens; i++)
        put_token(s, a, i / s->tokens, i % s->tokens, i % s->tokens);
    a->out = sw_op_attention(c.step, a->in[Q], a->in[K], a->in[V], &a->args);
    rank_case_back(&c, a->out, a->d_out);
}

static sw_tensor *run(form which, const attention *a)
{
    switch (which) {
    case GATHER:
        return sw_attention_gather(c.step, c.group, a->in[Q], a->in[K], a->in[V], &a->args);
    case RING:
        return sw_attention_ring(c.step, ring, a->in[Q], a->in[K], a->in[V], &a->args);
    default:
        return sw_attention_ulysses(c.step, c.group, a->in[Q], a->in[K], a->in[V], &a->args);
    }
}

static void make_part(const shape *s, form which, const sw_sequence *sequence, attention *a)
{
    uint64_t local = sw_sequence_local(sequence);

    make_args(s, a, local);
    for (uint64_t i = 0; i < s->batch * local; i++)
        put_token(s, a, i / local, i % local, sw_sequence_token(sequence, c.group->index, i % local));
    a->out = run(which, a);
    rank_case_back(&c, a->out, a->d_out);
}

/* Numbers of this rank's tokens; padding has no gradient. */
static void compare_tokens(const char *name, const sw_sequence *sequence, const sw_tensor *part,
                           const void *got, const sw_tensor *whole, const void *want)
{
    uint64_t n = part->dims[2] * part->dims[3];
    uint64_t local = part->dims[1];
    double scale = rank_case_scale(&c, want, sw_tensor_elems(whole));

    for (uint64_t i = 0; i < part->dims[0] * local; i++) {
        uint64_t token = sw_sequence_token(sequence, c.group->index, i % local);
        if (token < sequence->n_tokens) {
            rank_case_near(&c, name, got, i * n, want, (i / local * sequence->n_tokens + token) * n, n,
                           scale);
            continue;
        }
        for (uint64_t j = 0; j < n && part->storage->gradient == got; j++)
            assert_true(number_at(c.dtype, got, i * n + j) == 0);
    }
}

static void compare(const shape *s, const attention *whole, form which, sw_sequence_order order)
{
    static const char *const forms[] = {"gather", "ring", "ulysses"};
    static const char *const names[] = {"q", "k", "v"};
    char name[128];
    sw_sequence sequence;
    attention part;

    assert_int_equal(sw_sequence_make(&sequence, s->tokens, c.group->size, order, NULL), SW_OK);
    make_part(s, which, &sequence, &part);
    (void)snprintf(name, sizeof name, "%s, %s, order %d: out", forms[which], s->name, (int)order);
    compare_tokens(name, &sequence, part.out, sw_tensor_data(part.out), whole->out,
                   sw_tensor_data(whole->out));
    for (int i = 0; i < SINKS; i++) {
        (void)snprintf(name, sizeof name, "%s, %s, order %d: gradient of %s", forms[which], s->name,
                       (int)order, names[i]);
        compare_tokens(name, &sequence, part.in[i], part.in[i]->storage->gradient, whole->in[i],
                       whole->in[i]->storage->gradient);
    }
    if (!s->has_sinks)
        return;
    void *sum = part.in[SINKS]->storage->gradient;
    void *want = whole->in[SINKS]->storage->gradient;
    sw_all_reduce(c.group, s->heads, c.dtype, sum, sum);
    (void)snprintf(name, sizeof name, "%s, %s, order %d: sinks", forms[which], s->name, (int)order);
    rank_case_near(&c, name, sum, 0, want, 0, s->heads, rank_case_scale(&c, want, s->heads));
}

/* Forms from `first` up to `end`, in both orders, against one computation of one rank. */
static void compare_forms(const shape *s, sw_dtype dtype, form first, form end)
{
    attention whole;

    rank_case_begin(&c, dtype);
    make_whole(s, &whole);
    for (int which = (int)first; which < (int)end; which++) {
        for (unsigned order = 0; order < SW_SEQUENCE_ORDER_COUNT_; order++)
            compare(s, &whole, (form)which, (sw_sequence_order)order);
    }
}

static void every_form_and_order_gives_what_one_rank_gives_in_f64(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(shapes); i++)
        compare_forms(&shapes[i], SW_DTYPE_F64, GATHER, FORMS);
}

static void every_form_and_order_gives_what_one_rank_gives_in_f32(void **state)
{
    (void)state;
    for (size_t i = 0; i < SW_COUNT(shapes); i++)
        compare_forms(&shapes[i], SW_DTYPE_F32, GATHER, FORMS);
}

/* Case 65: a window that ends within, at the border of, and beyond a rank's chunk. */
static void bug_65_windows_go_across_chunks(void **state)
{
    (void)state;
    for (uint32_t window = 1; window < 50; window += 8) {
        shape s = {"a window", 1, 48, 24, 8, 2, 2, true, window, 0, false, true, 0};
        compare_forms(&s, SW_DTYPE_F64, GATHER, FORMS);
    }
}

/* Case 109: with local queries and gathered keys the mask goes by positions, not by places. */
static void bug_109_the_causal_mask_goes_by_positions(void **state)
{
    shape s = {"a prompt", 1, 40, 24, 24, 2, 2, true, 0, 0, false, false, 0};

    (void)state;
    compare_forms(&s, SW_DTYPE_F64, GATHER, FORMS);
}

/* Case 25: fewer key heads than ranks, or a number of them that ranks do not divide. */
static void bug_25_key_heads_are_repeated_in_the_exchange(void **state)
{
    static const uint64_t kv_heads[] = {1, 2, 3, 4, 6, 8, 12, 24};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(kv_heads); i++) {
        shape s = {"few key heads", 2, 16, 24, kv_heads[i], 2, 2, true, 0, 0, true, true, 0};
        compare_forms(&s, SW_DTYPE_F64, ULYSSES, FORMS);
    }
}

static void bug_25_query_heads_that_ranks_do_not_divide_are_refused_with_what_fits(void **state)
{
    shape s = {"odd heads", 1, 16, 5, 5, 4, 4, true, 0, 0, false, false, 0};
    sw_error err = {0};
    attention a;

    (void)state;
    if (c.group->size > 1) {
        rank_case_begin(&c, SW_DTYPE_F64);
        make_args(&s, &a, 4);
        assert_null(run(ULYSSES, &a));
        rank_case_refused(&c, SW_E_PLAN, "does not divide the 5 query heads of a tp rank");
    }
    assert_int_equal(sw_ulysses_check(12, 5, &err), SW_E_PLAN);
    assert_string_equal(err.what, "Ulysses attention: cp=5 does not divide the 12 query heads of a tp rank");
    assert_string_equal(err.help, "cp may be 1, 2, 3, 4, 6, 12, or any number with ring or gather");
    assert_int_equal(sw_ulysses_check(12, 6, &err), SW_OK);
}

/* q, k and v as a fused projection leaves them: views of one tensor, with gaps. */
static void views_of_a_fused_projection_are_taken_as_they_are(void **state)
{
    enum { TOKENS = 6, HEADS = 24, WIDTH = 4 };
    shape s = {"fused", 1, TOKENS * (uint64_t)c.group->size, HEADS, HEADS, WIDTH, WIDTH, true, 0, 0, false,
               false,   0};

    (void)state;
    for (int which = 0; which < FORMS; which++) {
        rank_case_begin(&c, SW_DTYPE_F64);
        attention plain;
        attention fused;
        sw_sequence sequence;
        assert_int_equal(sw_sequence_make(&sequence, s.tokens, c.group->size, SW_SEQUENCE_BALANCED, NULL),
                         SW_OK);
        make_part(&s, (form)which, &sequence, &plain);
        fused = plain;
        sw_tensor *all = rank_case_tensor(&c, 4, (const uint64_t[]){1, TOKENS, 3 * HEADS, WIDTH});
        for (uint64_t i = 0; i < sw_tensor_elems(all); i++) {
            uint64_t head = i / WIDTH % (3 * HEADS);
            uint64_t from = (i / WIDTH / (3 * HEADS) * HEADS + head % HEADS) * WIDTH + i % WIDTH;
            number_set(c.dtype, sw_tensor_data(all), i,
                       number_at(c.dtype, sw_tensor_data(plain.in[head / HEADS]), from));
        }
        for (uint64_t i = 0; i < 3; i++)
            fused.in[i] = sw_view_slice(c.step, all, 2, i * HEADS, HEADS);
        fused.out = run((form)which, &fused);
        rank_case_back(&c, fused.out, fused.d_out);
        rank_case_near(&c, "out", sw_tensor_data(fused.out), 0, sw_tensor_data(plain.out), 0,
                       sw_tensor_elems(plain.out), 1);
        for (uint64_t i = 0; i < sw_tensor_elems(all); i++) {
            uint64_t head = i / WIDTH % (3 * HEADS);
            uint64_t from = (i / WIDTH / (3 * HEADS) * HEADS + head % HEADS) * WIDTH + i % WIDTH;
            rank_case_near(&c, "gradient", all->storage->gradient, i,
                           plain.in[head / HEADS]->storage->gradient, from, 1, 1);
        }
    }
}

/* Generation: two queries at the end of a sequence whose keys are spread unevenly, the last ranks having
 * none. */
static void a_cache_that_is_spread_gives_what_one_rank_gives(void **state)
{
    enum { NEW = 2 };

    (void)state;
    for (size_t i = 0; i < SW_COUNT(shapes); i++) {
        const shape *s = &shapes[i];
        uint64_t each = s->tokens / c.group->size + 2;
        uint64_t first = each * c.group->index < s->tokens ? each * c.group->index : s->tokens;
        uint64_t n = s->tokens - first < each ? s->tokens - first : each;
        attention whole;
        attention part;
        attention queries;
        rank_case_begin(&c, SW_DTYPE_F64);
        make_args(s, &queries, NEW);
        make_args(s, &whole, s->tokens);
        make_args(s, &part, n);
        for (uint64_t j = 0; j < s->batch * s->tokens; j++)
            put_token(s, &whole, j / s->tokens, j % s->tokens, j % s->tokens);
        for (uint64_t j = 0; j < s->batch * n; j++)
            put_token(s, &part, j / n, j % n, first + j % n);
        for (uint64_t j = 0; j < s->batch * NEW; j++) {
            put_token(s, &queries, j / NEW, j % NEW, s->tokens);
            ((int32_t *)sw_tensor_data(queries.args.q_positions))[j] = (int32_t)(s->tokens + j % NEW);
        }
        whole.args.q_positions = part.args.q_positions = queries.args.q_positions;
        part.args.sinks = whole.args.sinks;
        whole.out = sw_op_attention(c.step, queries.in[Q], whole.in[K], whole.in[V], &whole.args);
        part.out = sw_attention_cached(c.step, c.group, queries.in[Q], part.in[K], part.in[V], &part.args);
        rank_case_must(&c, part.out);
        rank_case_near(&c, s->name, sw_tensor_data(part.out), 0, sw_tensor_data(whole.out), 0,
                       sw_tensor_elems(whole.out), 1);
        size_t bytes = (size_t)sw_tensor_elems(part.out) * sizeof(double);
        double *first_ranks = sw_stack_take(sw_step_stack(c.step), bytes);
        memcpy(first_ranks, sw_tensor_data(part.out), bytes);
        sw_broadcast(c.group, 0, sw_tensor_elems(part.out), SW_DTYPE_F64, first_ranks);
        assert_memory_equal(first_ranks, sw_tensor_data(part.out), bytes);
    }
}

static void a_cache_has_no_backward(void **state)
{
    attention a;
    sw_error err = {0};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    make_args(&shapes[0], &a, 3);
    for (uint64_t i = 0; i < 6; i++)
        put_token(&shapes[0], &a, i / 3, i % 3, i % 3);
    a.out = sw_attention_cached(c.step, c.group, a.in[Q], a.in[K], a.in[V], &a.args);
    rank_case_must(&c, a.out);
    assert_int_equal(sw_step_backward(c.step, a.out, a.d_out, &err), SW_E_ARGUMENT);
    assert_non_null(strstr(err.what, "attention over a cache has no backward"));
}

static uint64_t bits_of(uint64_t hash, const void *values, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)values)[i]) * 0x100000001b3U;
    return hash;
}

static void every_run_gives_the_same_bits(void **state)
{
    (void)state;
    for (int which = 0; which < FORMS; which++) {
        uint64_t hash[2] = {0};
        for (int times = 0; times < 2; times++) {
            attention a;
            sw_sequence sequence;
            const shape *s = &shapes[15];
            rank_case_begin(&c, SW_DTYPE_F32);
            assert_int_equal(
                sw_sequence_make(&sequence, s->tokens, c.group->size, SW_SEQUENCE_BALANCED, NULL), SW_OK);
            make_part(s, (form)which, &sequence, &a);
            hash[times] = bits_of(0, sw_tensor_data(a.out), sw_tensor_elems(a.out) * sizeof(float));
            for (int i = 0; i < TENSORS; i++)
                hash[times] = bits_of(hash[times], a.in[i]->storage->gradient,
                                      sw_tensor_elems(a.in[i]) * sizeof(float));
        }
        assert_true(hash[0] == hash[1]);
    }
}

static void steady_steps_allocate_nothing(void **state)
{
    const shape *s = &shapes[15];
    sw_sequence sequence;

    (void)state;
    assert_int_equal(sw_sequence_make(&sequence, s->tokens, c.group->size, SW_SEQUENCE_CONTIGUOUS, NULL),
                     SW_OK);
    for (int which = 0; which < FORMS; which++) {
        for (int times = 0; times < 3; times++) {
            attention a;
            rank_case_begin(&c, SW_DTYPE_F32);
            sw_alloc_fail_at(times == 2 ? 1 : 0);
            make_part(s, (form)which, &sequence, &a);
            sw_alloc_fail_at(0);
        }
    }
}

/* In validate mode tensors have layouts: a core is a local region, whose result lies as its queries do. */
static void the_result_lies_as_the_queries_do(void **state)
{
    const shape *s = &shapes[7]; /* values are narrower */
    const sw_grid grid = {1, {SW_AXIS_CP}, {c.group->size}};
    const sw_placement cut = {SW_PLACE_SHARD, 1, NULL};
    const uint64_t tokens = 4 * (uint64_t)c.group->size;
    sw_tensor_layout layouts[4];
    sw_tensor_layout expected;

    (void)state;
    const uint64_t dims[][4] = {
        {s->batch, tokens, s->heads,    s->width  },
        {s->batch, tokens, s->kv_heads, s->width  },
        {s->batch, tokens, s->kv_heads, s->v_width},
        {s->batch, tokens, 0,           0         }
    };
    for (int i = 0; i < 4; i++)
        assert_int_equal(sw_tensor_layout_make(&layouts[i], &grid, i == 3 ? 2 : 4, dims[i], &cut, NULL),
                         SW_OK);
    const uint64_t out[] = {s->batch, tokens, s->heads, s->v_width};
    assert_int_equal(sw_tensor_layout_make(&expected, &grid, 4, out, &cut, NULL), SW_OK);
    for (int which = 0; which < FORMS; which++) {
        attention a;
        rank_case_begin(&c, SW_DTYPE_F32);
        sw_step_validate(c.step, true);
        make_args(s, &a, 4);
        for (uint64_t i = 0; i < s->batch * 4; i++)
            put_token(s, &a, i / 4, i % 4, 4 * (uint64_t)c.group->index + i % 4);
        for (int i = 0; i < SINKS; i++)
            a.in[i]->layout = &layouts[i];
        ((sw_tensor *)(uintptr_t)a.args.q_positions)->layout = &layouts[3];
        ((sw_tensor *)(uintptr_t)a.args.k_positions)->layout = &layouts[3];
        a.out = run((form)which, &a);
        rank_case_must(&c, a.out);
        assert_non_null(a.out->layout);
        assert_true(sw_tensor_layout_equal(a.out->layout, &expected));
        sw_step_validate(c.step, false);
    }
}

typedef struct again {
    form which;
    const attention *a;
} again;

static sw_tensor *run_again(void *context, sw_step *step, const sw_tensor *const *in)
{
    const again *r = context;
    attention inner = *r->a;

    assert_ptr_equal(step, c.step);
    for (int i = 0; i < SINKS; i++)
        inner.in[i] = (sw_tensor *)(uintptr_t)in[i];
    inner.args.sinks = in[SINKS];
    return run(r->which, &inner);
}

static void regions_that_run_again_have_the_same_bits(void **state)
{
    const shape *s = &shapes[15];
    sw_sequence sequence;

    (void)state;
    assert_int_equal(sw_sequence_make(&sequence, s->tokens, c.group->size, SW_SEQUENCE_BALANCED, NULL),
                     SW_OK);
    for (int which = 0; which < FORMS; which++) {
        attention once;
        attention twice;
        rank_case_begin(&c, SW_DTYPE_F32);
        make_part(s, (form)which, &sequence, &once);
        make_part(s, (form)which, &sequence, &twice);
        for (int i = 0; i < TENSORS; i++)
            twice.in[i]->storage->has_gradient = false;
        again context = {(form)which, &twice};
        sw_tensor *out = sw_step_recompute(c.step, run_again, &context,
                                           (const sw_tensor *const *)(const void *)twice.in, TENSORS);
        rank_case_back(&c, out, twice.d_out);
        assert_memory_equal(sw_tensor_data(out), sw_tensor_data(once.out),
                            sw_tensor_elems(out) * sizeof(float));
        for (int i = 0; i < TENSORS; i++)
            assert_memory_equal(twice.in[i]->storage->gradient, once.in[i]->storage->gradient,
                                sw_tensor_elems(once.in[i]) * sizeof(float));
    }
}

/* Bytes of a step with the ring: of `tokens` tokens of one rank. */
static size_t ring_memory(sw_ring *of, uint64_t tokens)
{
    shape s = {"memory", 1, tokens, 4, 4, 32, 32, true, 0, 0, false, false, 0};
    attention a;
    sw_error err = {0};
    sw_step *step = NULL;
    sw_step *kept = c.step;

    assert_int_equal(sw_step_create(&step, c.kernel, &err), SW_OK);
    c.step = step;
    rank_case_begin(&c, SW_DTYPE_F32);
    make_args(&s, &a, tokens);
    for (uint64_t i = 0; i < tokens; i++)
        put_token(&s, &a, 0, i, i);
    a.out = sw_attention_ring(step, of, a.in[Q], a.in[K], a.in[V], &a.args);
    rank_case_back(&c, a.out, a.d_out);
    size_t peak = sw_stack_peak(sw_step_stack(step));
    sw_step_destroy(step);
    c.step = kept;
    return peak;
}

static void memory_of_the_ring_falls_with_the_number_of_ranks(void **state)
{
    enum { TOKENS = 1152, FIXED = 150000 }; /* workspace of the kernel's tiles, small things */
    sw_ring *alone = NULL;

    (void)state;
    assert_int_equal(sw_ring_create(&alone, sw_comm_group(c.comm, SW_GROUP_TP), NULL), SW_OK);
    size_t whole = ring_memory(alone, TOKENS);
    size_t part = ring_memory(ring, TOKENS / c.group->size);
    sw_ring_destroy(alone);
    assert_true(part <= whole / c.group->size + FIXED);
}

static void arguments_that_do_not_fit_are_refused_before_the_first_message(void **state)
{
    const shape *s = &shapes[0];
    attention a;

    (void)state;
    for (int which = 0; which < FORMS; which++) {
        rank_case_begin(&c, SW_DTYPE_F32);
        make_args(s, &a, 4);
        a.in[V] = rank_case_tensor(&c, 4, (const uint64_t[]){2, 3, 24, 4});
        assert_null(run((form)which, &a));
        rank_case_refused(&c, SW_E_ARGUMENT, "v is [2, 3, 24, 4], q has 2 rows of 4 tokens");

        rank_case_begin(&c, SW_DTYPE_F32);
        make_args(s, &a, 4);
        a.in[K] = rank_case_tensor(&c, 4, (const uint64_t[]){2, 4, 7, 4});
        a.in[V] = rank_case_tensor(&c, 4, (const uint64_t[]){2, 4, 7, 4});
        assert_null(run((form)which, &a));
        rank_case_refused(&c, SW_E_ARGUMENT, "7 key/value heads do not divide 24 heads");

        rank_case_begin(&c, SW_DTYPE_F32);
        make_args(s, &a, 4);
        a.args.k_positions = rank_case_whole(&c, 2, (const uint64_t[]){2, 5});
        assert_null(run((form)which, &a));
        rank_case_refused(&c, SW_E_ARGUMENT, "k_positions is I32 [2, 5] for 2 rows of 4 tokens");

        rank_case_begin(&c, SW_DTYPE_F32);
        make_args(s, &a, 4);
        a.args.sinks = rank_case_random(&c, 1, (const uint64_t[]){23}, 1);
        assert_null(run((form)which, &a));
        rank_case_refused(&c, SW_E_ARGUMENT, "sinks is [23], q has 24 heads");
    }
}

static void a_ring_without_memory_is_refused_and_leaves_nothing(void **state)
{
    int64_t live = sw_alloc_live();
    sw_status status = SW_E_NO_MEMORY;

    (void)state;
    for (uint64_t n = 1; status == SW_E_NO_MEMORY; n++) {
        sw_ring *made = NULL;
        sw_alloc_fail_at(n);
        status = sw_ring_create(&made, c.group, NULL);
        sw_alloc_fail_at(0);
        sw_ring_destroy(made);
        assert_int_equal(sw_alloc_live(), live);
    }
    assert_int_equal(status, SW_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_and_order_gives_what_one_rank_gives_in_f64),
        cmocka_unit_test(every_form_and_order_gives_what_one_rank_gives_in_f32),
        cmocka_unit_test(bug_65_windows_go_across_chunks),
        cmocka_unit_test(bug_109_the_causal_mask_goes_by_positions),
        cmocka_unit_test(bug_25_key_heads_are_repeated_in_the_exchange),
        cmocka_unit_test(bug_25_query_heads_that_ranks_do_not_divide_are_refused_with_what_fits),
        cmocka_unit_test(views_of_a_fused_projection_are_taken_as_they_are),
        cmocka_unit_test(a_cache_that_is_spread_gives_what_one_rank_gives),
        cmocka_unit_test(a_cache_has_no_backward),
        cmocka_unit_test(every_run_gives_the_same_bits),
        cmocka_unit_test(steady_steps_allocate_nothing),
        cmocka_unit_test(the_result_lies_as_the_queries_do),
        cmocka_unit_test(regions_that_run_again_have_the_same_bits),
        cmocka_unit_test(memory_of_the_ring_falls_with_the_number_of_ranks),
        cmocka_unit_test(arguments_that_do_not_fit_are_refused_before_the_first_message),
        cmocka_unit_test(a_ring_without_memory_is_refused_and_leaves_nothing),
    };
    return SW_MPI_MAIN_WITH("parallel_attention", tests, open_case, close_case);
}
