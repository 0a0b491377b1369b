/* Loss parallel: whatever the cut of the vocabulary, loss and gradients are those of whole logits. */
#include "rank_case.h"

#include "mesh/shard.h"
#include "parallel/loss.h"

enum { BATCH = 2, TOKENS = 7, ROWS = BATCH * TOKENS };

RANK_CASE(c, open_case, close_case)

static sw_tensor *whole_logits(uint64_t vocabulary, double size)
{
    sw_tensor *x = rank_case_random(&c, 3, (const uint64_t[]){BATCH, TOKENS, vocabulary}, vocabulary);

    for (uint64_t i = 0; i < sw_tensor_elems(x); i++)
        number_set(c.dtype, sw_tensor_data(x), i, size * number_at(c.dtype, sw_tensor_data(x), i));
    return x;
}

/* Columns of every row. */
static sw_tensor *part_of(const sw_tensor *whole, sw_range columns)
{
    uint64_t width = columns.end - columns.begin;
    uint64_t all = whole->dims[2];
    sw_tensor *part = rank_case_tensor(&c, 3, (const uint64_t[]){BATCH, TOKENS, width});

    for (uint64_t r = 0; r < ROWS; r++) {
        for (uint64_t i = 0; i < width; i++)
            number_set(c.dtype, sw_tensor_data(part), r * width + i,
                       number_at(c.dtype, sw_tensor_data(whole), r * all + columns.begin + i));
    }
    return part;
}

/* Every third row is ignored; the first and the last token are among the targets. */
static sw_tensor *targets_below(uint64_t vocabulary)
{
    sw_tensor *targets = rank_case_whole(&c, 2, (const uint64_t[]){BATCH, TOKENS});
    int32_t *values = sw_tensor_data(targets);

    for (int32_t r = 0; r < ROWS; r++)
        values[r] = r % 3 == 2 ? -100 : (int32_t)((uint64_t)r * 5 % vocabulary);
    values[0] = 0;
    values[1] = (int32_t)vocabulary - 1;
    return targets;
}

static void compare(uint64_t vocabulary, sw_range columns, double size)
{
    const sw_vocabulary_part part = {c.group, vocabulary, columns.begin};
    double factor = 1.0 / 10;

    sw_tensor *whole = whole_logits(vocabulary, size);
    sw_tensor *mine = part_of(whole, columns);
    sw_tensor *targets = targets_below(vocabulary);
    sw_tensor *want = sw_op_cross_entropy(c.step, whole, targets, factor);
    rank_case_must(&c, want);
    double loss = number_at(c.dtype, sw_tensor_data(want), 0);
    rank_case_back(&c, want, NULL);
    sw_tensor *got = sw_loss_parallel(c.step, &part, mine, targets, factor);
    rank_case_must(&c, got);
    double of_ranks = number_at(c.dtype, sw_tensor_data(got), 0);
    if (fabs(of_ranks - loss) > c.tolerance * fabs(loss))
        fail_msg("loss %.17g is not %.17g", of_ranks, loss);
    rank_case_back(&c, got, NULL);
    double scale = rank_case_scale(&c, whole->storage->gradient, whole->storage->n_elems);
    uint64_t width = columns.end - columns.begin;
    for (uint64_t r = 0; r < ROWS; r++)
        rank_case_near(&c, "gradient", mine->storage->gradient, r * width, whole->storage->gradient,
                       r * vocabulary + columns.begin, width, scale);
}

static void bug_59_the_loss_never_sees_whole_logits_and_is_the_same(void **state)
{
    static const uint64_t sizes[] = {2, 5, 13, 64, 97};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(sizes); i++) {
        sw_range columns = sw_shard_range(sizes[i], c.group->size, c.group->index);
        rank_case_begin(&c, SW_DTYPE_F64);
        compare(sizes[i], columns, 3);
        rank_case_begin(&c, SW_DTYPE_F32);
        compare(sizes[i], columns, 3);
    }
}

/* 13 tokens over 4 ranks: 4, 4, 4, 1. No row of padding is made, so none can win or be counted. */
static void bug_27_a_vocabulary_that_ranks_do_not_divide_has_no_padding(void **state)
{
    (void)state;
    rank_case_begin(&c, SW_DTYPE_F64);
    compare(13, sw_shard_range(13, c.group->size, c.group->index), -40); /* padding by 0 would win */
}

static void all_of_the_vocabulary_may_be_on_one_rank(void **state)
{
    sw_range columns = {0, 0};

    (void)state;
    if (c.group->index == c.group->size - 1)
        columns.end = 11;
    rank_case_begin(&c, SW_DTYPE_F64);
    compare(11, columns, 1);
}

static void large_logits_do_not_overflow(void **state)
{
    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    compare(29, sw_shard_range(29, c.group->size, c.group->index), 300);
}

static void the_loss_has_the_same_bits_on_all_ranks_and_in_every_run(void **state)
{
    const uint64_t vocabulary = 50;
    sw_range columns = sw_shard_range(vocabulary, c.group->size, c.group->index);
    const sw_vocabulary_part part = {c.group, vocabulary, columns.begin};
    float loss[2] = {0};

    (void)state;
    for (int run = 0; run < 2; run++) {
        rank_case_begin(&c, SW_DTYPE_F32);
        sw_tensor *mine = part_of(whole_logits(vocabulary, 2), columns);
        sw_tensor *got = sw_loss_parallel(c.step, &part, mine, targets_below(vocabulary), 0.1);
        rank_case_must(&c, got);
        memcpy(&loss[run], sw_tensor_data(got), sizeof loss[run]);
    }
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    sw_all_reduce_max(c.group, 1, SW_DTYPE_F32, &loss[0], &loss[0]);
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
}

static void a_target_beyond_the_vocabulary_is_refused_on_all_ranks(void **state)
{
    const uint64_t vocabulary = 12;
    sw_range columns = sw_shard_range(vocabulary, c.group->size, c.group->index);
    const sw_vocabulary_part part = {c.group, vocabulary, columns.begin};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    sw_tensor *mine = part_of(whole_logits(vocabulary, 1), columns);
    sw_tensor *targets = targets_below(vocabulary);
    ((int32_t *)sw_tensor_data(targets))[3] = 12;
    assert_null(sw_loss_parallel(c.step, &part, mine, targets, 1));
    rank_case_refused(&c, SW_E_ARGUMENT, "loss parallel: target 12 of row 3, the vocabulary has 12");
}

static void columns_beyond_the_vocabulary_are_refused(void **state)
{
    const sw_vocabulary_part part = {c.group, 12, 9};

    (void)state;
    rank_case_begin(&c, SW_DTYPE_F32);
    sw_tensor *mine = whole_logits(4, 1);
    assert_null(sw_loss_parallel(c.step, &part, mine, targets_below(4), 1));
    rank_case_refused(&c, SW_E_ARGUMENT, "4 columns from token 9 on, the vocabulary has 12");
}

/* Tokens are cut over cp and the vocabulary over tp: the loss is a summand over cp, and whole over tp. */
static void the_layout_of_the_loss_says_what_is_a_summand(void **state)
{
    const sw_grid grid = {
        2, {SW_AXIS_CP, SW_AXIS_TP},
         {2,          2         }
    };
    const sw_placement cuts[] = {
        {SW_PLACE_SHARD, 1, NULL},
        {SW_PLACE_SHARD, 2, NULL}
    };
    const sw_vocabulary_part part = {sw_comm_group(c.comm, SW_GROUP_TP), 10, 0};
    sw_tensor_layout layout;
    char text[SW_TENSOR_LAYOUT_TEXT];

    (void)state;
    assert_int_equal(
        sw_tensor_layout_make(&layout, &grid, 3, (const uint64_t[]){BATCH, 2 * TOKENS, 10}, cuts, NULL),
        SW_OK);
    rank_case_begin(&c, SW_DTYPE_F32);
    sw_tensor *logits = whole_logits(5, 1);
    logits->layout = &layout;
    const sw_tensor *loss = sw_loss_parallel(c.step, &part, logits, targets_below(5), 1);
    rank_case_must(&c, loss);
    assert_non_null(loss->layout);
    assert_int_equal(loss->layout->n_dims, 0);
    sw_tensor_layout_text(loss->layout, text);
    assert_string_equal(text, "cp=P tp=R");
}

static void steady_steps_allocate_nothing(void **state)
{
    const uint64_t vocabulary = 40;
    sw_range columns = sw_shard_range(vocabulary, c.group->size, c.group->index);
    const sw_vocabulary_part part = {c.group, vocabulary, columns.begin};

    (void)state;
    for (int run = 0; run < 3; run++) {
        rank_case_begin(&c, SW_DTYPE_F32);
        sw_alloc_fail_at(run == 2 ? 1 : 0);
        sw_tensor *mine = part_of(whole_logits(vocabulary, 2), columns);
        sw_tensor *got = sw_loss_parallel(c.step, &part, mine, targets_below(vocabulary), 0.1);
        sw_alloc_fail_at(0);
        rank_case_back(&c, got, NULL);
    }
}

/* Ranks with unequal numbers of tokens: the mean is over all of them, not the mean of means. */
static void the_factor_counts_the_tokens_of_all_ranks(void **state)
{
    int32_t targets[16];
    uint64_t n = c.group->index + 2;
    uint64_t total = 0;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        targets[i] = i == 1 ? -100 : 7;
    for (uint64_t rank = 0; rank < c.group->size; rank++)
        total += rank + 1;
    assert_true(sw_loss_factor(c.group, targets, n, 0) == 1 / (double)total);
    assert_true(sw_loss_factor(c.group, targets, n, 3) == 1 / (double)(total + 3 * c.group->size));
    assert_true(sw_loss_factor(c.group, targets + 1, 1, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bug_59_the_loss_never_sees_whole_logits_and_is_the_same),
        cmocka_unit_test(bug_27_a_vocabulary_that_ranks_do_not_divide_has_no_padding),
        cmocka_unit_test(all_of_the_vocabulary_may_be_on_one_rank),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(the_loss_has_the_same_bits_on_all_ranks_and_in_every_run),
        cmocka_unit_test(a_target_beyond_the_vocabulary_is_refused_on_all_ranks),
        cmocka_unit_test(columns_beyond_the_vocabulary_are_refused),
        cmocka_unit_test(the_layout_of_the_loss_says_what_is_a_summand),
        cmocka_unit_test(steady_steps_allocate_nothing),
        cmocka_unit_test(the_factor_counts_the_tokens_of_all_ranks),
    };
    return SW_MPI_MAIN_WITH("parallel_loss", tests, open_case, close_case);
}
