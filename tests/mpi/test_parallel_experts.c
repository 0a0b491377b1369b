/*
 * Experts over ranks, in both modes: outputs and gradients are those of one rank that has all experts and all
 * tokens, which is computed choice by choice, by operations of one rank.
 */
#include "rank_case.h"

#include "mesh/shard.h"
#include "parallel/collective_node.h"
#include "parallel/experts.h"

enum { WIDTH = 5 };

typedef enum choice { ANY, ALL_TO_ONE, SOME_EMPTY, PADDED, NOBODY } choice;

typedef struct shape {
    const char *name;
    uint64_t tokens;
    uint64_t experts;
    uint64_t per_token;
    choice choice;
} shape;

static const shape shapes[] = {
    {"any",                      23, 24, 2, ANY       },
    {"one a token",              16, 24, 1, ANY       },
    {"four a token",             31, 48, 4, ANY       },
    {"all to one expert",        19, 24, 1, ALL_TO_ONE},
    {"experts without tokens",   21, 24, 2, SOME_EMPTY},
    {"fewer tokens than ranks",  3,  24, 2, ANY       },
    {"no tokens",                0,  24, 2, ANY       },
    {"padding goes nowhere",     27, 24, 3, PADDED    },
    {"nobody goes anywhere",     9,  24, 2, NOBODY    },
    {"experts are not divided",  17, 5,  2, ANY       },
    {"fewer experts than ranks", 17, 2,  1, ANY       },
};

RANK_CASE(c, open_case, close_case)

static int32_t choice_of(const shape *s, uint64_t token, uint64_t j)
{
    uint64_t stride = s->experts / s->per_token; /* choices of a token differ */
    uint64_t any = (uint64_t)((random_at(5, token) + 1) * 1000);

    switch (s->choice) {
    case ALL_TO_ONE:
        return (int32_t)s->experts - 2;
    case SOME_EMPTY:
        return (int32_t)(token % 2 + j);
    case NOBODY:
        return -1;
    case PADDED:
        if (token % 4 == 1)
            return -1;
        break;
    default:
        break;
    }
    return (int32_t)((any + j * stride) % s->experts);
}

/* One mixture: rows of some tokens, parameters of some experts. */
typedef struct mixture {
    sw_tensor *x;       /* [N, C] */
    sw_tensor *weights; /* [N, k] */
    sw_tensor *experts; /* [E, C]: an expert multiplies, then bends */
    sw_tensor *choices; /* I32 [N, k] */
    sw_tensor *out;
    void *d_out;
} mixture;

static mixture mixture_of(const shape *s, sw_range tokens, sw_range experts)
{
    uint64_t n = tokens.end - tokens.begin;
    uint64_t n_experts = experts.end - experts.begin;
    mixture m = {.x = rank_case_tensor(&c, 2, (const uint64_t[]){n, WIDTH}),
                 .weights = rank_case_tensor(&c, 2, (const uint64_t[]){n, s->per_token}),
                 .experts = rank_case_tensor(&c, 2, (const uint64_t[]){n_experts, WIDTH}),
                 .choices = rank_case_whole(&c, 2, (const uint64_t[]){n, s->per_token})};

    m.d_out = sw_stack_take(sw_step_stack(c.step), (n + 1) * WIDTH * sizeof(double));
    assert_non_null(m.d_out);
    for (uint64_t i = 0; i < n * WIDTH; i++) {
        number_set(c.dtype, sw_tensor_data(m.x), i, random_at(1, tokens.begin * WIDTH + i));
        number_set(c.dtype, m.d_out, i, random_at(2, tokens.begin * WIDTH + i));
    }
    for (uint64_t i = 0; i < n * s->per_token; i++) {
        number_set(c.dtype, sw_tensor_data(m.weights), i, random_at(3, tokens.begin * s->per_token + i));
        ((int32_t *)sw_tensor_data(m.choices))[i] =
            choice_of(s, tokens.begin + i / s->per_token, i % s->per_token);
    }
    for (uint64_t i = 0; i < n_experts * WIDTH; i++)
        number_set(c.dtype, sw_tensor_data(m.experts), i, 1 + random_at(4, experts.begin * WIDTH + i));
    return m;
}

/* Rows times the parameters of their experts; of expert -1 zeros. */
static sw_tensor *apply_experts(const sw_tensor *rows, const sw_tensor *experts, const sw_tensor *ids)
{
    return sw_op_activate(c.step, sw_op_multiply(c.step, rows, sw_op_gather_rows(c.step, experts, ids)),
                          SW_ACT_SILU);
}

/* Choice by choice, without any order. */
static sw_tensor *mix_alone(const shape *s, const mixture *m)
{
    sw_tensor *sum = NULL;

    for (uint64_t j = 0; j < s->per_token; j++) {
        sw_tensor *ids = rank_case_whole(&c, 1, &s->tokens);
        for (uint64_t i = 0; i < s->tokens; i++)
            ((int32_t *)sw_tensor_data(ids))[i] =
                ((const int32_t *)sw_tensor_data(m->choices))[i * s->per_token + j];
        sw_tensor *y = apply_experts(m->x, m->experts, ids);
        sw_tensor *column = sw_view_merge(c.step, sw_view_slice(c.step, m->weights, 1, j, 1), 0);
        y = sw_op_row_scale(c.step, y, sw_op_copy(c.step, column));
        sum = sum == NULL ? y : sw_op_add(c.step, sum, y);
    }
    return sum;
}

static sw_tensor *mix_over_ranks(sw_ep_mode mode, const shape *s, const mixture *m, const sw_tensor *x,
                                 const sw_tensor *choices, const sw_tensor *weights)
{
    const sw_expert_ranks ranks = {c.group, mode, s->experts};
    const sw_expert_route *route = NULL;
    const sw_tensor *rows = sw_experts_dispatch(c.step, &ranks, x, choices, &route);

    rank_case_must(&c, rows);
    sw_tensor *ids = rank_case_whole(&c, 1, &route->n_rows);
    const int32_t *ends = sw_tensor_data(route->ends);
    int32_t row = 0;
    assert_int_equal(route->ends->dims[0], route->own.end - route->own.begin);
    for (int32_t e = 0; e < (int32_t)route->ends->dims[0]; e++) {
        for (; row < ends[e]; row++)
            ((int32_t *)sw_tensor_data(ids))[row] = e;
    }
    assert_int_equal(row, route->n_rows);
    return sw_experts_combine(c.step, route, apply_experts(rows, m->experts, ids), weights);
}

/* Gradients of each rank's own tokens, or summands of those of all. */
static void compare_tokens(sw_ep_mode mode, const char *name, sw_tensor *part, const sw_tensor *whole,
                           sw_range tokens)
{
    uint64_t n = sw_tensor_elems(part);
    uint64_t width = part->dims[1];
    const void *want = whole->storage->gradient;

    if (mode == SW_EP_AXIS)
        sw_all_reduce(c.group, n, c.dtype, part->storage->gradient, part->storage->gradient);
    rank_case_near(&c, name, part->storage->gradient, 0, want, tokens.begin * width, n,
                   rank_case_scale(&c, want, sw_tensor_elems(whole)));
}

static void compare(sw_ep_mode mode, const shape *s)
{
    const sw_expert_ranks ranks = {c.group, mode, s->experts};
    sw_range own = sw_experts_own(&ranks);
    sw_range all = {0, s->tokens};
    sw_range tokens =
        mode == SW_EP_TP_EXTEND ? sw_shard_range(s->tokens, c.group->size, c.group->index) : all;
    char name[96];

    mixture whole = mixture_of(s, all, (sw_range){0, s->experts});
    mixture part = mixture_of(s, tokens, own);
    whole.out = mix_alone(s, &whole);
    rank_case_back(&c, whole.out, whole.d_out);
    part.out = mix_over_ranks(mode, s, &part, part.x, part.choices, part.weights);
    rank_case_back(&c, part.out, part.d_out);
    (void)snprintf(name, sizeof name, "mode %d, %s: out", (int)mode, s->name);
    rank_case_near(&c, name, sw_tensor_data(part.out), 0, sw_tensor_data(whole.out), tokens.begin * WIDTH,
                   sw_tensor_elems(part.out),
                   rank_case_scale(&c, sw_tensor_data(whole.out), s->tokens * WIDTH));
    (void)snprintf(name, sizeof name, "mode %d, %s: gradient of tokens", (int)mode, s->name);
    compare_tokens(mode, name, part.x, whole.x, tokens);
    (void)snprintf(name, sizeof name, "mode %d, %s: gradient of weights", (int)mode, s->name);
    compare_tokens(mode, name, part.weights, whole.weights, tokens);
    (void)snprintf(name, sizeof name, "mode %d, %s: gradient of experts", (int)mode, s->name);
    assert_true(part.experts->storage->has_gradient); /* zeros where no token came, not nothing */
    rank_case_near(&c, name, part.experts->storage->gradient, 0, whole.experts->storage->gradient,
                   own.begin * WIDTH, (own.end - own.begin) * WIDTH,
                   rank_case_scale(&c, whole.experts->storage->gradient, s->experts * WIDTH));
}

static void all_shapes(sw_ep_mode mode)
{
    for (size_t i = 0; i < SW_COUNT(shapes); i++) {
        rank_case_begin(&c, SW_DTYPE_F64);
        compare(mode, &shapes[i]);
        rank_case_begin(&c, SW_DTYPE_F32);
        compare(mode, &shapes[i]);
    }
}

static void rows_that_are_sent_give_what_one_rank_gives(void **state)
{
    (void)state;
    all_shapes(SW_EP_TP_EXTEND);
}

static void results_that_are_summed_give_what_one_rank_gives(void **state)
{
    (void)state;
    all_shapes(SW_EP_AXIS);
}

static void ranks_with_all_experts_work_alone(void **state)
{
    (void)state;
    all_shapes(SW_EP_NONE);
}

/* A router before the experts: logits, softmax, the two best. */
typedef struct routed {
    mixture m;
    sw_tensor *router; /* [E, C] */
} routed;

static sw_tensor *run_routed(sw_ep_mode mode, const shape *s, routed *r)
{
    const sw_tensor *indices = NULL;
    const sw_tensor *x = r->m.x;

    if (mode == SW_EP_AXIS)
        x = sw_sum_node(c.step, c.group, x, SW_SUM_BACKWARD);
    const sw_tensor *scores = sw_op_softmax(c.step, sw_op_linear(c.step, x, r->router, NULL));
    const sw_tensor *weights = sw_op_top_k(c.step, scores, &(sw_top_k_choice){.k = s->per_token}, &indices);
    rank_case_must(&c, weights);
    if (mode != SW_EP_NONE)
        return mix_over_ranks(mode, s, &r->m, x, indices, weights);
    memcpy(sw_tensor_data(r->m.choices), sw_tensor_data(indices),
           (size_t)sw_tensor_elems(indices) * sizeof(int32_t));
    mixture m = r->m;
    m.weights = sw_op_copy(c.step, weights);
    return mix_alone(s, &m);
}

static routed routed_of(const shape *s, sw_range tokens, sw_range experts)
{
    return (routed){mixture_of(s, tokens, experts),
                    rank_case_random(&c, 2, (const uint64_t[]){s->experts, WIDTH}, 9)};
}

/* The gradient of tokens goes through experts and router, and is whole on every rank in both modes. */
static void compare_routed(sw_ep_mode mode, const shape *s, sw_range tokens)
{
    const sw_expert_ranks ranks = {c.group, mode, s->experts};
    routed whole = routed_of(s, (sw_range){0, s->tokens}, (sw_range){0, s->experts});
    routed part = routed_of(s, tokens, sw_experts_own(&ranks));

    rank_case_back(&c, run_routed(SW_EP_NONE, s, &whole), whole.m.d_out);
    rank_case_back(&c, run_routed(mode, s, &part), part.m.d_out);
    void *sum = part.router->storage->gradient;
    const void *want = whole.router->storage->gradient;
    uint64_t n = sw_tensor_elems(part.router);
    sw_all_reduce(c.group, n, c.dtype, sum, sum);
    rank_case_near(&c, "router", sum, 0, want, 0, n, rank_case_scale(&c, want, n));
    want = whole.m.x->storage->gradient;
    rank_case_near(&c, "tokens", part.m.x->storage->gradient, 0, want, tokens.begin * WIDTH,
                   sw_tensor_elems(part.m.x), rank_case_scale(&c, want, s->tokens * WIDTH));
}

/* Case 44: all tokens are on rank 0, the others have none. Case 43: the router's gradient is the sum. */
static void bug_44_the_routers_gradient_is_right_where_ranks_have_no_tokens(void **state)
{
    const shape s = {"routed", 12, 8, 2, ANY};
    sw_range tokens = {0, c.group->index == 0 ? s.tokens : 0};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    compare_routed(SW_EP_TP_EXTEND, &s, tokens);
}

static void bug_43_router_gradients_of_ranks_sum_to_that_of_one_rank(void **state)
{
    const shape s = {"routed", 26, 24, 2, ANY};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    compare_routed(SW_EP_TP_EXTEND, &s, sw_shard_range(s.tokens, c.group->size, c.group->index));
    rank_case_begin(&c, SW_DTYPE_F64);
    compare_routed(SW_EP_AXIS, &s, (sw_range){0, s.tokens});
}

/* Case 46: five experts over any number of ranks, owned in order; ranks and experts are not mixed up. */
static void bug_46_uneven_experts_are_owned_in_order_and_give_the_same(void **state)
{
    const shape s = {"five experts", 33, 5, 2, ANY};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    compare(SW_EP_TP_EXTEND, &s);
    rank_case_begin(&c, SW_DTYPE_F64);
    compare(SW_EP_AXIS, &s);
}

static void every_run_gives_the_same_bits(void **state)
{
    static const sw_ep_mode modes[] = {SW_EP_AXIS, SW_EP_TP_EXTEND};
    const shape *s = &shapes[2];
    float kept[31 * WIDTH];

    (void)state;
    for (size_t i = 0; i < SW_COUNT(modes); i++) {
        const sw_expert_ranks ranks = {c.group, modes[i], s->experts};
        for (int times = 0; times < 2; times++) {
            rank_case_begin(&c, SW_DTYPE_F32);
            mixture m = mixture_of(s, sw_shard_range(s->tokens, c.group->size, c.group->index),
                                   sw_experts_own(&ranks));
            if (modes[i] == SW_EP_AXIS)
                m = mixture_of(s, (sw_range){0, s->tokens}, sw_experts_own(&ranks));
            m.out = mix_over_ranks(modes[i], s, &m, m.x, m.choices, m.weights);
            rank_case_back(&c, m.out, m.d_out);
            size_t bytes = (size_t)sw_tensor_elems(m.x) * sizeof(float);
            if (times == 0)
                memcpy(kept, m.x->storage->gradient, bytes);
            else
                assert_memory_equal(kept, m.x->storage->gradient, bytes);
        }
    }
}

static void steady_steps_allocate_nothing(void **state)
{
    const shape *s = &shapes[0];
    const sw_expert_ranks ranks = {c.group, SW_EP_TP_EXTEND, s->experts};

    (void)state;
    for (int times = 0; times < 3; times++) {
        rank_case_begin(&c, SW_DTYPE_F32);
        sw_alloc_fail_at(times == 2 ? 1 : 0);
        mixture m =
            mixture_of(s, sw_shard_range(s->tokens, c.group->size, c.group->index), sw_experts_own(&ranks));
        m.out = mix_over_ranks(SW_EP_TP_EXTEND, s, &m, m.x, m.choices, m.weights);
        rank_case_back(&c, m.out, m.d_out);
        sw_alloc_fail_at(0);
    }
}

static sw_tensor *run_again(void *context, sw_step *step, const sw_tensor *const *in)
{
    const mixture *m = context;

    assert_ptr_equal(step, c.step);
    return mix_over_ranks(SW_EP_TP_EXTEND, &shapes[0], m, in[0], m->choices, in[1]);
}

/* Parameters of experts are used inside without being among the inputs. */
static void regions_that_run_again_have_the_same_bits(void **state)
{
    const shape *s = &shapes[0];
    const sw_expert_ranks ranks = {c.group, SW_EP_TP_EXTEND, s->experts};
    sw_range tokens = sw_shard_range(s->tokens, c.group->size, c.group->index);

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    mixture once = mixture_of(s, tokens, sw_experts_own(&ranks));
    mixture twice = mixture_of(s, tokens, sw_experts_own(&ranks));
    once.out = mix_over_ranks(SW_EP_TP_EXTEND, s, &once, once.x, once.choices, once.weights);
    rank_case_back(&c, once.out, once.d_out);
    const sw_tensor *in[] = {twice.x, twice.weights};
    twice.out = sw_step_recompute(c.step, run_again, &twice, in, SW_COUNT(in));
    rank_case_back(&c, twice.out, twice.d_out);
    const sw_tensor *pairs[][2] = {
        {once.x,       twice.x      },
        {once.weights, twice.weights},
        {once.experts, twice.experts}
    };
    for (size_t i = 0; i < SW_COUNT(pairs); i++)
        assert_memory_equal(pairs[i][0]->storage->gradient, pairs[i][1]->storage->gradient,
                            sw_tensor_elems(pairs[i][0]) * sizeof(float));
}

static void choices_that_there_are_not_are_refused(void **state)
{
    const shape *s = &shapes[0];
    const sw_expert_ranks ranks = {c.group, SW_EP_TP_EXTEND, s->experts};
    const sw_expert_route *route = NULL;
    sw_range all = {0, s->tokens};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    mixture m = mixture_of(s, all, all);
    ((int32_t *)sw_tensor_data(m.choices))[5] = 24;
    assert_null(sw_experts_dispatch(c.step, &ranks, m.x, m.choices, &route));
    rank_case_refused(&c, SW_E_ARGUMENT, "tokens to experts: token 2 goes to expert 24 of 24");

    rank_case_begin(&c, SW_DTYPE_F32);
    m = mixture_of(s, all, all);
    sw_tensor *other = rank_case_whole(&c, 2, (const uint64_t[]){4, 2});
    assert_null(sw_experts_dispatch(c.step, &ranks, m.x, other, &route));
    rank_case_refused(&c, SW_E_ARGUMENT, "tokens [23, 5] with choices [4, 2] of I32");

    rank_case_begin(&c, SW_DTYPE_F32);
    m = mixture_of(s, all, all);
    sw_tensor *rows = sw_experts_dispatch(c.step, &ranks, m.x, m.choices, &route);
    rank_case_must(&c, rows);
    sw_tensor *weights = rank_case_random(&c, 2, (const uint64_t[]){23, 3}, 1);
    assert_null(sw_experts_combine(c.step, route, rows, weights));
    rank_case_refused(&c, SW_E_ARGUMENT, "rows of 23 tokens with 2 choices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_are_sent_give_what_one_rank_gives),
        cmocka_unit_test(results_that_are_summed_give_what_one_rank_gives),
        cmocka_unit_test(ranks_with_all_experts_work_alone),
        cmocka_unit_test(bug_43_router_gradients_of_ranks_sum_to_that_of_one_rank),
        cmocka_unit_test(bug_44_the_routers_gradient_is_right_where_ranks_have_no_tokens),
        cmocka_unit_test(bug_46_uneven_experts_are_owned_in_order_and_give_the_same),
        cmocka_unit_test(every_run_gives_the_same_bits),
        cmocka_unit_test(steady_steps_allocate_nothing),
        cmocka_unit_test(regions_that_run_again_have_the_same_bits),
        cmocka_unit_test(choices_that_there_are_not_are_refused),
    };
    return SW_MPI_MAIN_WITH("parallel_experts", tests, open_case, close_case);
}
