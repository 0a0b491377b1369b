/* Collectives as nodes of the tape: values and gradients are those of one rank that has everything. */
#include "rank_case.h"

#include "parallel/collective_node.h"

RANK_CASE(c, open_case, close_case)

enum { ROWS = 3, WIDTH = 4 };

/* Rows `begin` .. begin + n - 1 of a matrix that all ranks draw alike. */
static sw_tensor *rows_of(uint64_t seed, uint64_t begin, uint64_t n)
{
    sw_tensor *x = rank_case_tensor(&c, 2, (const uint64_t[]){n, WIDTH});

    for (uint64_t i = 0; i < n * WIDTH; i++)
        number_set(c.dtype, sw_tensor_data(x), i, random_at(seed, begin * WIDTH + i));
    return x;
}

/* Every rank weighs all rows in its own way; what they found is added up and scattered. */
static void a_gather_adds_up_what_all_ranks_found(void **state)
{
    uint64_t n = ROWS * (uint64_t)c.group->size;

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    sw_tensor *mine = rows_of(1, ROWS * (uint64_t)c.group->index, ROWS);
    sw_tensor *all = sw_gather_node(c.step, c.group, mine, 0);
    rank_case_must(&c, all);
    sw_tensor *whole = rows_of(1, 0, n);
    rank_case_near(&c, "gathered", sw_tensor_data(all), 0, sw_tensor_data(whole), 0, n * WIDTH, 1);
    double *d_all = sw_stack_take(sw_step_stack(c.step), (size_t)n * WIDTH * sizeof *d_all);
    for (uint64_t i = 0; i < n * WIDTH; i++)
        d_all[i] = random_at(50 + c.group->index, i);
    rank_case_back(&c, all, d_all);
    for (uint64_t i = 0; i < ROWS * WIDTH; i++) {
        double sum = 0;
        for (uint64_t rank = 0; rank < c.group->size; rank++)
            sum += random_at(50 + rank, ROWS * WIDTH * (uint64_t)c.group->index + i);
        rank_case_near(&c, "gradient", mine->storage->gradient, i, &sum, 0, 1, 1);
    }
}

/* A view of the middle of each row, gathered along the last dim. */
static void a_gather_takes_views_and_any_dim(void **state)
{
    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    sw_tensor *mine = rows_of(c.group->index, 0, ROWS);
    sw_tensor *all = sw_gather_node(c.step, c.group, sw_view_slice(c.step, mine, 1, 1, 2), 1);
    rank_case_must(&c, all);
    assert_int_equal(all->dims[1], 2 * c.group->size);
    for (uint64_t i = 0; i < sw_tensor_elems(all); i++) {
        uint64_t row = i / all->dims[1];
        uint64_t column = i % all->dims[1];
        double want = random_at(column / 2, row * WIDTH + 1 + column % 2);
        assert_true(number_at(c.dtype, sw_tensor_data(all), i) == (double)(float)want);
    }
    rank_case_back(&c, sw_op_sum(c.step, all), NULL);
    for (uint64_t i = 0; i < ROWS * WIDTH; i++) {
        bool is_in_view = i % WIDTH == 1 || i % WIDTH == 2;
        assert_true(number_at(c.dtype, mine->storage->gradient, i) == (is_in_view ? c.group->size : 0));
    }
}

/* Ranks have 1, 2, .. as summands, and as gradients. */
static void check_sum(sw_sum_way way, double value_of_ranks, double gradient_of_ranks)
{
    double mine = c.group->index + 1;

    rank_case_begin(&c, SW_DTYPE_F64);
    sw_tensor *x = rank_case_tensor(&c, 1, (const uint64_t[]){2});
    number_set(c.dtype, sw_tensor_data(x), 0, mine);
    number_set(c.dtype, sw_tensor_data(x), 1, 10 * mine);
    sw_tensor *y = sw_sum_node(c.step, c.group, x, way);
    rank_case_must(&c, y);
    assert_true(number_at(c.dtype, sw_tensor_data(y), 0) == value_of_ranks);
    assert_true(number_at(c.dtype, sw_tensor_data(y), 1) == 10 * value_of_ranks);
    rank_case_back(&c, y, (const double[]){mine, 10 * mine});
    assert_true(number_at(c.dtype, x->storage->gradient, 0) == gradient_of_ranks);
    assert_true(number_at(c.dtype, x->storage->gradient, 1) == 10 * gradient_of_ranks);
}

static void sums_go_the_ways_they_are_told(void **state)
{
    double mine = c.group->index + 1;
    double all = c.group->size * (c.group->size + 1) / 2.0;

    (void)state;
    check_sum(SW_SUM_FORWARD, all, mine);
    check_sum(SW_SUM_BACKWARD, mine, all);
    check_sum(SW_SUM_BOTH, all, all);
}

/* What all compute alike counts once among summands, also from a view. */
static void a_gradient_stays_on_the_first_rank(void **state)
{
    double first = c.group->index == 0 ? 1 : 0;

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    sw_tensor *x = rows_of(1, 0, ROWS);
    sw_tensor *whole = sw_once_node(c.step, c.group, x);
    sw_tensor *part = sw_once_node(c.step, c.group, sw_view_slice(c.step, x, 1, 2, 2));
    rank_case_must(&c, part);
    assert_memory_equal(sw_tensor_data(whole), sw_tensor_data(x), ROWS * WIDTH * sizeof(double));
    assert_true(number_at(c.dtype, sw_tensor_data(part), 3) == random_at(1, WIDTH + 3));
    rank_case_back(&c, sw_op_concat(c.step, whole, part), NULL);
    for (uint64_t i = 0; i < ROWS * WIDTH; i++)
        assert_true(number_at(c.dtype, x->storage->gradient, i) == (i % WIDTH < 2 ? first : 2 * first));
}

static void sums_of_views_are_sums_of_their_elements(void **state)
{
    static const sw_sum_way ways[] = {SW_SUM_FORWARD, SW_SUM_BACKWARD, SW_SUM_BOTH};

    (void)state;
    for (size_t w = 0; w < SW_COUNT(ways); w++) {
        double n = c.group->size;
        double factor = ways[w] == SW_SUM_BACKWARD ? 1 : n;
        rank_case_begin(&c, SW_DTYPE_F64);
        sw_tensor *x = rows_of(1, 0, ROWS); /* the same on all ranks */
        sw_tensor *y = sw_sum_node(c.step, c.group, sw_view_slice(c.step, x, 1, 1, 2), ways[w]);
        rank_case_must(&c, y);
        for (uint64_t i = 0; i < 2 * (uint64_t)ROWS; i++) {
            double want = factor * random_at(1, i / 2 * WIDTH + 1 + i % 2);
            rank_case_near(&c, "sum", sw_tensor_data(y), i, &want, 0, 1, 1);
        }
        rank_case_back(&c, sw_op_sum(c.step, y), NULL);
        double gradient = ways[w] == SW_SUM_FORWARD ? 1 : n;
        assert_true(number_at(c.dtype, x->storage->gradient, 1) == gradient);
        assert_true(number_at(c.dtype, x->storage->gradient, 3) == 0);
    }
}

/*
 * Case 18: a norm over heads that are cut over ranks, `replicas` of which hold the same. The mean square is
 * over the full width, every head counted once.
 */
static void compare_norm(uint32_t replicas)
{
    uint64_t parts = c.group->size / replicas;
    uint64_t part = c.group->index / replicas;
    const sw_rms_args args = {.eps = 1e-6, .full_width = parts * WIDTH};

    rank_case_begin(&c, SW_DTYPE_F64);
    sw_tensor *mine = rank_case_tensor(&c, 2, (const uint64_t[]){ROWS, WIDTH});
    sw_tensor *whole = rank_case_tensor(&c, 2, (const uint64_t[]){ROWS, parts * WIDTH});
    for (uint64_t i = 0; i < sw_tensor_elems(whole); i++) {
        uint64_t column = i % (parts * WIDTH);
        number_set(c.dtype, sw_tensor_data(whole), i, random_at(3, i));
        if (column / WIDTH == part)
            number_set(c.dtype, sw_tensor_data(mine), i / (parts * WIDTH) * WIDTH + column % WIDTH,
                       random_at(3, i));
    }
    sw_tensor *want = sw_op_rms_norm(c.step, whole, NULL, args.eps, 0);
    rank_case_back(&c, sw_op_sum(c.step, sw_op_multiply(c.step, want, want)), NULL);
    const sw_tensor *sums = sw_sum_node(c.step, c.group, sw_op_square_sums(c.step, mine), SW_SUM_BOTH);
    sums = sw_op_scale(c.step, sums, 1.0 / replicas);
    sw_tensor *got = sw_op_rms_by_sums(c.step, mine, sums, NULL, &args);
    rank_case_must(&c, got);
    rank_case_back(&c, sw_op_sum(c.step, sw_op_multiply(c.step, got, got)), NULL);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t from = row * parts * WIDTH + part * WIDTH;
        rank_case_near(&c, "norm", sw_tensor_data(got), row * WIDTH, sw_tensor_data(want), from, WIDTH, 1);
        rank_case_near(&c, "gradient", mine->storage->gradient, row * WIDTH, whole->storage->gradient, from,
                       WIDTH, 1);
    }
}

static void bug_18_a_norm_over_all_heads_counts_every_head_once(void **state)
{
    (void)state;
    compare_norm(1);
    if (c.group->size % 2 == 0)
        compare_norm(2);
    compare_norm(c.group->size);
}

static void integers_are_gathered_without_a_gradient(void **state)
{
    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    sw_tensor *positions = rank_case_whole(&c, 2, (const uint64_t[]){2, 1});
    ((int32_t *)sw_tensor_data(positions))[0] = (int32_t)c.group->index;
    ((int32_t *)sw_tensor_data(positions))[1] = -(int32_t)c.group->index;
    const sw_tensor *all = sw_gather_node(c.step, c.group, positions, 1);
    rank_case_must(&c, all);
    for (int32_t i = 0; i < (int32_t)c.group->size; i++) {
        assert_int_equal(((int32_t *)sw_tensor_data(all))[i], i);
        assert_int_equal(((int32_t *)sw_tensor_data(all))[(int32_t)c.group->size + i], -i);
    }
    assert_false(all->storage->needs_gradient);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gather_adds_up_what_all_ranks_found),
        cmocka_unit_test(a_gather_takes_views_and_any_dim),
        cmocka_unit_test(sums_go_the_ways_they_are_told),
        cmocka_unit_test(a_gradient_stays_on_the_first_rank),
        cmocka_unit_test(sums_of_views_are_sums_of_their_elements),
        cmocka_unit_test(bug_18_a_norm_over_all_heads_counts_every_head_once),
        cmocka_unit_test(integers_are_gathered_without_a_gradient),
    };
    return SW_MPI_MAIN_WITH("parallel_node", tests, open_case, close_case);
}
