/* Shapes and views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "gen.h"
#include "tensor/copy.h"
#include "tensor/tensor.h"

static sw_stack *stack;

static int open_stack(void **state)
{
    (void)state;
    stack = sw_stack_create();
    return stack == NULL;
}

static int close_stack(void **state)
{
    (void)state;
    sw_stack_destroy(stack);
    return 0;
}

/* Elements 0, 1, 2, ... */
static sw_tensor *counting(uint32_t n_dims, const uint64_t *dims)
{
    sw_tensor *t = NULL;

    assert_int_equal(sw_tensor_create(&t, stack, SW_DTYPE_F64, n_dims, dims, NULL, NULL), SW_OK);
    for (uint64_t i = 0; i < t->storage->n_elems; i++)
        ((double *)t->storage->data)[i] = (double)i;
    return t;
}
#define COUNTING(...)                                                                                        \
    counting((uint32_t)(sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t)), (uint64_t[]){__VA_ARGS__})

static void expect_values(const sw_tensor *t, const double *expected, size_t n)
{
    double got[64] = {0};

    assert_int_equal(sw_tensor_elems(t), n);
    sw_copy_to_dense(t, got);
    for (size_t i = 0; i < n; i++)
        assert_true(got[i] == expected[i]);
}
#define EXPECT(t, ...)                                                                                       \
    expect_values((t), (double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double))

static void a_slice_of_a_dim_is_these_rows(void **state)
{
    sw_tensor *t = COUNTING(3, 4);

    (void)state;
    assert_int_equal(sw_tensor_cut(t, 1, 1, 2, NULL), SW_OK);
    EXPECT(t, 1, 2, 5, 6, 9, 10);
    assert_int_equal(sw_tensor_cut(t, 0, 2, 1, NULL), SW_OK);
    EXPECT(t, 9, 10);
    assert_int_equal(sw_tensor_cut(t, 1, 2, 0, NULL), SW_OK);
    assert_int_equal(sw_tensor_elems(t), 0);
}

static void two_dims_swapped_are_the_transposed_matrix(void **state)
{
    sw_tensor *t = COUNTING(2, 3);

    (void)state;
    assert_int_equal(sw_tensor_swap(t, 0, 1, NULL), SW_OK);
    EXPECT(t, 0, 3, 1, 4, 2, 5);
    assert_false(sw_tensor_is_dense(t));
}

static void a_dim_splits_in_two_and_two_merge_in_one(void **state)
{
    sw_tensor *t = COUNTING(2, 6);
    bool is_view = false;

    (void)state;
    assert_int_equal(sw_tensor_split(t, 1, 2, NULL), SW_OK);
    assert_int_equal(t->n_dims, 3);
    assert_int_equal(t->dims[1], 3);
    assert_int_equal(t->dims[2], 2);
    assert_int_equal(sw_tensor_cut(t, 2, 1, 1, NULL), SW_OK); /* the second of each pair */
    EXPECT(t, 1, 3, 5, 7, 9, 11);
    assert_int_equal(sw_tensor_merge(t, 1, &is_view, NULL), SW_OK);
    assert_true(is_view);
    assert_int_equal(t->n_dims, 2);
    EXPECT(t, 1, 3, 5, 7, 9, 11);
    assert_int_equal(sw_tensor_swap(t, 0, 1, NULL), SW_OK);
    assert_int_equal(sw_tensor_merge(t, 0, &is_view, NULL), SW_OK);
    assert_false(is_view); /* the elements would have to move */
    assert_int_equal(t->n_dims, 2);
}

static void rows_are_found_in_a_part_of_a_matrix_and_not_in_a_transposed_one(void **state)
{
    sw_tensor_rows rows = {0};
    sw_tensor *t = COUNTING(2, 3, 8);

    (void)state;
    assert_int_equal(sw_tensor_cut(t, 2, 2, 4, NULL), SW_OK);
    assert_true(sw_tensor_as_rows(t, 1, &rows));
    assert_int_equal(rows.n_rows, 6);
    assert_int_equal(rows.width, 4);
    assert_int_equal(rows.stride, 8);
    assert_false(sw_tensor_as_rows(t, 2, &rows));
    assert_int_equal(sw_tensor_cut(t, 1, 0, 2, NULL), SW_OK);
    assert_false(sw_tensor_as_rows(t, 1, &rows)); /* a gap between the two batches */
    assert_int_equal(sw_tensor_cut(t, 0, 1, 1, NULL), SW_OK);
    assert_true(sw_tensor_as_rows(t, 1, &rows)); /* one batch only */
    assert_int_equal(rows.n_rows, 2);
    t = COUNTING(3, 4);
    assert_int_equal(sw_tensor_swap(t, 0, 1, NULL), SW_OK);
    assert_false(sw_tensor_as_rows(t, 1, &rows));
}

/* Any chain of views against the elements that it must show, one by one. */
static bool views_show_their_elements(gen *g)
{
    uint64_t dims[3] = {gen_between(g, 1, 4), gen_between(g, 1, 4), gen_between(g, 1, 4)};
    sw_tensor *t = counting(3, dims);
    double dense[64] = {0};
    uint64_t index[3] = {0};
    uint64_t cut = gen_below(g, (uint32_t)dims[1]);
    uint32_t a = gen_below(g, 3);
    uint32_t b = gen_below(g, 3);

    assert_int_equal(sw_tensor_cut(t, 1, cut, dims[1] - cut, NULL), SW_OK);
    assert_int_equal(sw_tensor_swap(t, a, b, NULL), SW_OK);
    sw_copy_to_dense(t, dense);
    for (uint64_t i = 0; i < sw_tensor_elems(t); i++) {
        uint64_t rest = i;
        for (uint32_t d = 3; d-- > 0; rest /= t->dims[d])
            index[d] = rest % t->dims[d];
        uint64_t swapped = index[a];
        index[a] = index[b];
        index[b] = swapped;
        double expected = (double)((index[0] * dims[1] + index[1] + cut) * dims[2] + index[2]);
        if (dense[i] != expected)
            return false;
    }
    return true;
}

static void chains_of_views_show_the_elements_they_say(void **state)
{
    (void)state;
    assert_true(gen_holds(views_show_their_elements, 500));
}

static void what_is_added_to_a_views_gradient_lands_in_its_elements(void **state)
{
    double gradient[6] = {0};
    const double add[3] = {10, 20, 30};
    sw_tensor *t = COUNTING(3, 2);

    (void)state;
    sw_tensor_lend_gradient(t, gradient);
    assert_int_equal(sw_tensor_cut(t, 1, 1, 1, NULL), SW_OK);
    sw_add_to_gradient(t, add);
    sw_add_to_gradient(t, add);
    const double expected[6] = {0, 20, 0, 40, 0, 60};
    assert_memory_equal(gradient, expected, sizeof expected);
}

static void sizes_that_no_memory_has_are_refused(void **state)
{
    const uint64_t six[6] = {1, 1, 1, 1, 1, 1};
    const uint64_t wraps[3] = {1ULL << 32, 1ULL << 32, 2};
    const uint64_t large[2] = {1ULL << 31, 1ULL << 30};
    const uint64_t empty[3] = {1ULL << 63, 0, 1ULL << 63};
    uint64_t n = 7;
    sw_error err = {0};
    sw_tensor *t = NULL;

    (void)state;
    assert_int_equal(sw_shape_elems(&n, SW_DTYPE_F32, 6, six, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "6 dims, a tensor has at most 5");
    assert_int_equal(sw_shape_elems(&n, SW_DTYPE_F32, 3, wraps, &err), SW_E_LIMIT);
    assert_string_equal(err.what,
                        "a tensor [4294967296, 4294967296, 2] has more bytes than there are addresses");
    assert_int_equal(sw_shape_elems(&n, SW_DTYPE_F64, 2, large, &err), SW_E_LIMIT);
    assert_int_equal(sw_shape_elems(&n, SW_DTYPE_F4, 2, large, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "there are no tensors of type F4");
    assert_int_equal(n, 7);
    assert_int_equal(sw_shape_elems(&n, SW_DTYPE_F32, 3, empty, &err), SW_OK);
    assert_int_equal(n, 0);
    const uint64_t block[2] = {1024, 1024};
    sw_alloc_fail_at(1);
    assert_int_equal(sw_tensor_create(&t, stack, SW_DTYPE_F64, 2, block, NULL, &err), SW_E_NO_MEMORY);
    sw_alloc_fail_at(0);
    assert_string_equal(err.what, "no memory for a tensor [1024, 1024]");
}

static void views_that_there_are_not_are_refused(void **state)
{
    sw_tensor *t = COUNTING(3, 4);
    sw_tensor was = *t;
    bool is_view = false;
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_tensor_cut(t, 2, 0, 1, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "there is no dim 2 in a tensor of 2");
    assert_int_equal(sw_tensor_cut(t, 1, 2, 3, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "rows 2 to 5 of dim 1, which has 4");
    assert_int_equal(sw_tensor_cut(t, 1, UINT64_MAX, 2, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_tensor_split(t, 1, 3, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "dim 1 of 4 rows is no whole number of 3");
    assert_int_equal(sw_tensor_split(t, 1, 0, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_tensor_swap(t, 0, 7, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_tensor_merge(t, 1, &is_view, &err), SW_E_ARGUMENT);
    assert_int_equal(sw_tensor_merge(t, UINT32_MAX, &is_view, &err), SW_E_ARGUMENT);
    assert_memory_equal(t, &was, sizeof was);
    t = COUNTING(1, 1, 1, 1, 2);
    assert_int_equal(sw_tensor_split(t, 4, 1, &err), SW_E_LIMIT);
}

static void a_dim_of_no_rows_splits_into_so_many_of_none(void **state)
{
    sw_tensor *t = COUNTING(2, 6);
    sw_error err = {0};

    (void)state;
    assert_int_equal(sw_tensor_split_into(t, 1, 2, NULL), SW_OK);
    assert_true(t->n_dims == 3 && t->dims[1] == 2 && t->dims[2] == 3);
    assert_int_equal(sw_tensor_cut(t, 1, 1, 1, NULL), SW_OK);
    EXPECT(t, 3, 4, 5, 9, 10, 11);
    assert_int_equal(sw_tensor_cut(t, 2, 1, 0, NULL), SW_OK);
    assert_int_equal(sw_tensor_split_into(t, 2, 5, NULL), SW_OK);
    assert_true(t->n_dims == 4 && t->dims[2] == 5 && t->dims[3] == 0);
    assert_int_equal(sw_tensor_split_into(t, 0, 3, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "dim 0 of 2 rows is no whole number of 3");
    assert_int_equal(sw_tensor_split_into(t, 0, 0, &err), SW_E_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_of_a_dim_is_these_rows),
        cmocka_unit_test(two_dims_swapped_are_the_transposed_matrix),
        cmocka_unit_test(a_dim_splits_in_two_and_two_merge_in_one),
        cmocka_unit_test(rows_are_found_in_a_part_of_a_matrix_and_not_in_a_transposed_one),
        cmocka_unit_test(chains_of_views_show_the_elements_they_say),
        cmocka_unit_test(what_is_added_to_a_views_gradient_lands_in_its_elements),
        cmocka_unit_test(sizes_that_no_memory_has_are_refused),
        cmocka_unit_test(views_that_there_are_not_are_refused),
        cmocka_unit_test(a_dim_of_no_rows_splits_into_so_many_of_none),
    };
    return cmocka_run_group_tests(tests, open_stack, close_stack);
}
