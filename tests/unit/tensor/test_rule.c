/* Validate mode: layouts of results, and what refusals say. The rules themselves: tests/property/runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mesh/shard.h"
#include "tensor/operations.h"

static sw_kernel *kernel;
static sw_step *step;

static int open_step(void **state)
{
    (void)state;
    return sw_kernel_create(&kernel, 1, SW_KERNEL_BEST, NULL) != SW_OK ||
           sw_step_create(&step, kernel, NULL) != SW_OK;
}

static int close_step(void **state)
{
    (void)state;
    sw_step_destroy(step);
    sw_kernel_destroy(kernel);
    return 0;
}

static int begin_validating(void **state)
{
    (void)state;
    sw_step_begin(step, true);
    sw_step_validate(step, true);
    return 0;
}

#define R         ((sw_placement){.kind = SW_PLACE_REPLICATE})
#define S(d)      ((sw_placement){SW_PLACE_SHARD, (d), NULL})
#define CUT(d, c) ((sw_placement){SW_PLACE_SHARD, (d), (c)})

/* A tensor of these whole dims ("24 8") over cp=2, tp=4, as rank 0 holds it, filled with zeros. */
static sw_tensor *held(sw_dtype dtype, const char *dims, sw_placement on_cp, sw_placement on_tp)
{
    static const sw_grid grid = {
        2, {SW_AXIS_CP, SW_AXIS_TP},
         {2,          4         }
    };
    const sw_placement on[2] = {on_cp, on_tp};
    sw_tensor_layout *layout = sw_stack_take(sw_step_stack(step), sizeof *layout);
    uint64_t extents[SW_TENSOR_MAX_DIMS] = {0};
    uint32_t n_dims = 0;
    char *end = NULL;
    sw_error err = {0};

    for (; *dims != '\0'; dims = end)
        extents[n_dims++] = strtoull(dims, &end, 10);
    if (sw_tensor_layout_make(layout, &grid, n_dims, extents, on, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_tensor_layout_local(layout, (sw_grid_coord){{0}}, extents);
    sw_tensor *x = sw_step_tensor(step, dtype, n_dims, extents);
    assert_non_null(x);
    memset(sw_tensor_data(x), 0, x->storage->n_elems * sw_elem_bytes(dtype));
    x->layout = layout;
    return x;
}

static void expect_layout(const sw_tensor *y, const char *expected)
{
    char text[SW_TENSOR_LAYOUT_TEXT];
    sw_error err = {0};

    if (sw_step_status(step, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_tensor_layout_text(y->layout, text);
    assert_string_equal(text, expected);
}

static void expect_refusal(const sw_tensor *y, const char *what)
{
    sw_error err = {0};

    assert_null(y);
    assert_int_equal(sw_step_status(step, &err), SW_E_PLAN);
    assert_string_equal(err.what, what);
    assert_true(err.help[0] != '\0');
}

static void a_column_and_a_row_layer_make_summands(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "2 6 8", S(1), R);
    const sw_tensor *up = held(SW_DTYPE_F32, "12 8", R, S(0));
    const sw_tensor *bias = held(SW_DTYPE_F32, "12", R, S(0));
    const sw_tensor *down = held(SW_DTYPE_F32, "8 12", R, S(1));

    (void)state;
    const sw_tensor *h = sw_op_activate(step, sw_op_linear(step, x, up, bias), SW_ACT_SILU);
    expect_layout(h, "cp=S(1) tp=S(2)");
    assert_int_equal(h->layout->dims[2], 12);
    const sw_tensor *y = sw_op_linear(step, h, down, NULL);
    expect_layout(y, "cp=S(1) tp=P");
    assert_int_equal(y->layout->dims[1], 6);
    expect_refusal(
        sw_op_activate(step, y, SW_ACT_SILU),
        "activate: x cp=S(1) tp=P: not without communication over tp: x is a summand, in which the "
        "operation is not linear by itself");
}

static void a_row_bias_would_be_added_on_every_rank(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "2 12", R, S(1));
    const sw_tensor *weight = held(SW_DTYPE_F32, "8 12", R, S(1));
    const sw_tensor *bias = held(SW_DTYPE_F32, "8", R, R);

    (void)state;
    expect_refusal(
        sw_op_linear(step, x, weight, bias),
        "linear: x cp=R tp=S(1), weight cp=R tp=S(1), bias cp=R tp=R: not without communication over "
        "tp: bias would be added once on every rank");
}

static void layouts_are_told_where_local_sizes_do_not_fit_either(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "2 12", R, S(1));
    const sw_tensor *weight = held(SW_DTYPE_F32, "8 12", R, R);

    (void)state;
    expect_refusal(
        sw_op_linear(step, x, weight, NULL),
        "linear: x cp=R tp=S(1), weight cp=R tp=R: not without communication over tp: weight would "
        "have to be cut over the same dim");
}

static void a_row_of_which_all_is_needed_must_not_be_cut(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "2 12", S(1), R);

    (void)state;
    expect_refusal(sw_op_softmax(step, x),
                   "softmax: x cp=S(1) tp=R: not without communication over cp: x is cut "
                   "over a dim of which every rank needs the whole");
}

static const sw_segment qkv[] = {
    {.extent = 16  },
    { .extent = 4, .replicas = 2},
    { .extent = 4, .replicas = 2}
};
static const sw_cut fused = {1, 3, qkv};
static const sw_segment plain_qkv[] = {{.extent = 16}, {.extent = 4}, {.extent = 4}};
static const sw_cut fused_plain = {1, 3, plain_qkv};

/* 4 heads of 4, 2 key heads of 2 (so that 4 ranks hold one twice): a fused projection, sliced, as attention
 * takes it. */
static void a_fused_projection_is_sliced_at_its_segments_and_attended(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "1 6 8", R, R);
    const sw_tensor *weight = held(SW_DTYPE_F32, "24 8", R, CUT(0, &fused));
    const sw_tensor *positions = held(SW_DTYPE_I32, "1 6", R, R);
    const sw_attend_args args = {.q_positions = positions, .k_positions = positions, .scale = 1};

    (void)state;
    const sw_tensor *all = sw_op_linear(step, x, weight, NULL);
    expect_layout(all, "cp=R tp=S(2;seg=16+4r2+4r2)");
    const sw_tensor *q = sw_view_split(step, sw_view_slice(step, all, 2, 0, 4), 2, 2);
    expect_layout(q, "cp=R tp=S(2)");
    const sw_tensor *k = sw_view_split(step, sw_view_slice(step, all, 2, 4, 2), 2, 2);
    expect_layout(k, "cp=R tp=S(2;rep=2)");
    const sw_tensor *v = sw_view_split(step, sw_view_slice(step, all, 2, 6, 2), 2, 2);
    const sw_tensor *y = sw_op_attention(step, q, k, v, &args);
    expect_layout(y, "cp=R tp=S(2)");
    expect_layout(sw_view_merge(step, y, 2), "cp=R tp=S(2)");
    expect_refusal(
        sw_view_slice(step, all, 2, 0, 3),
        "slice: dim 2 of x cp=R tp=S(2;seg=16+4r2+4r2): not without communication: it is cut, and the "
        "rows are no segment of the cut");
}

static void key_heads_that_belong_to_other_query_heads_are_refused(void **state)
{
    const sw_tensor *q = held(SW_DTYPE_F32, "1 6 4 2", R, S(2));
    const sw_tensor *k = held(SW_DTYPE_F32, "1 6 2 2", R, S(2)); /* not in pairs */
    const sw_tensor *positions = held(SW_DTYPE_I32, "1 6", R, R);
    const sw_attend_args args = {.q_positions = positions, .k_positions = positions, .scale = 1};

    (void)state;
    expect_refusal(
        sw_op_attention(step, q, k, k, &args),
        "attention: q cp=R tp=S(2), k cp=R tp=S(2), v cp=R tp=S(2), q_positions cp=R tp=R, k_positions "
        "cp=R tp=R: not without communication over tp: k is cut at other rows than the inputs before it");
}

/* Multi-query attention: every rank has the one key head. Of two it would not know which is its own. */
static void one_key_head_that_all_ranks_have_serves_every_cut_of_the_heads(void **state)
{
    const sw_tensor *q = held(SW_DTYPE_F32, "1 6 4 2", R, S(2));
    const sw_tensor *one = held(SW_DTYPE_F32, "1 6 1 2", R, R);
    const sw_tensor *two = held(SW_DTYPE_F32, "1 6 2 2", R, R);
    const sw_tensor *positions = held(SW_DTYPE_I32, "1 6", R, R);
    const sw_attend_args args = {.q_positions = positions, .k_positions = positions, .scale = 1};

    (void)state;
    expect_layout(sw_op_attention(step, q, one, one, &args), "cp=R tp=S(2)");
    expect_refusal(
        sw_op_attention(step, q, two, two, &args),
        "attention: q cp=R tp=S(2), k cp=R tp=R, v cp=R tp=R, q_positions cp=R tp=R, k_positions cp=R "
        "tp=R: not without communication over tp: k would have to be cut over the same dim");
}

static void a_bias_that_is_cut_at_other_rows_than_its_weight_is_refused(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "6 8", R, R);
    const sw_tensor *weight = held(SW_DTYPE_F32, "24 8", R, CUT(0, &fused_plain));
    const sw_tensor *bias = held(SW_DTYPE_F32, "24", R, S(0));

    (void)state;
    expect_refusal(sw_op_linear(step, x, weight, bias),
                   "linear: x cp=R tp=R, weight cp=R tp=S(0;seg=16+4+4), bias cp=R tp=S(0): not without "
                   "communication over tp: bias is cut at other rows than the inputs before it");
}

static void heads_that_ranks_hold_parts_of_are_not_split(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "2 24", R, S(1));

    (void)state;
    expect_layout(sw_view_split(step, x, 1, 3), "cp=R tp=S(1)");
    expect_refusal(sw_view_split(step, x, 1, 4),
                   "split: dim 1 of x cp=R tp=S(1): not without communication: ranks "
                   "do not hold whole rows, or not those of an even cut");
}

static void dims_are_merged_only_where_the_outer_one_is_cut(void **state)
{
    const sw_tensor *outer = held(SW_DTYPE_F32, "8 6 5", R, S(0));
    const sw_tensor *inner = held(SW_DTYPE_F32, "8 6 5", S(1), R);

    (void)state;
    expect_layout(sw_view_merge(step, outer, 0), "cp=R tp=S(0)");
    expect_layout(sw_view_swap(step, outer, 0, 2), "cp=R tp=S(2)");
    expect_refusal(sw_view_merge(step, inner, 0),
                   "merge: dim 0 of x cp=S(1) tp=R: not without communication: the inner dim is cut");
}

static void an_input_without_a_layout_beside_others_is_refused(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "6 8", R, R);
    const uint64_t dims[2] = {6, 8};

    (void)state;
    const sw_tensor *bare = sw_step_tensor(step, SW_DTYPE_F32, 2, dims);
    assert_null(sw_op_softmax(step, bare)->layout); /* a local region */
    expect_refusal(sw_op_add(step, x, bare), "add: b has no layout, others have");
}

static void layouts_over_other_axes_are_refused(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "6 8", R, R);
    sw_tensor *other = held(SW_DTYPE_F32, "6 8", R, R);
    sw_tensor_layout layout = *other->layout;

    (void)state;
    layout.grid.axis[0] = SW_AXIS_DP;
    other->layout = &layout;
    expect_refusal(sw_op_add(step, x, other), "add: the layout of b is over other axes or dims");
}

static void whole_shapes_that_do_not_fit_are_refused(void **state)
{
    const sw_tensor *x = held(SW_DTYPE_F32, "8 6", R, S(0));
    const sw_tensor *other = held(SW_DTYPE_F32, "7 6", R, S(0)); /* fits on rank 0 */
    sw_error err = {0};

    (void)state;
    assert_null(sw_op_add(step, x, other));
    assert_int_equal(sw_step_status(step, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "add: b is [7, 6], its dim 0 must be 8 as in the inputs before it");
}

/* A pointer that no operation could follow. */
static void production_never_looks_at_layouts(void **state)
{
    const uint64_t dims[2] = {6, 8};

    (void)state;
    sw_step_validate(step, false);
    sw_tensor *x = sw_step_tensor(step, SW_DTYPE_F32, 2, dims);
    memset(sw_tensor_data(x), 0, 6 * 8 * sizeof(float));
    x->layout = (const sw_tensor_layout *)(uintptr_t)64;
    const sw_tensor *y = sw_op_softmax(step, sw_view_merge(step, sw_view_split(step, x, 1, 4), 0));
    assert_non_null(y);
    assert_null(y->layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_column_and_a_row_layer_make_summands, begin_validating),
        cmocka_unit_test_setup(a_row_bias_would_be_added_on_every_rank, begin_validating),
        cmocka_unit_test_setup(layouts_are_told_where_local_sizes_do_not_fit_either, begin_validating),
        cmocka_unit_test_setup(a_row_of_which_all_is_needed_must_not_be_cut, begin_validating),
        cmocka_unit_test_setup(a_fused_projection_is_sliced_at_its_segments_and_attended, begin_validating),
        cmocka_unit_test_setup(key_heads_that_belong_to_other_query_heads_are_refused, begin_validating),
        cmocka_unit_test_setup(one_key_head_that_all_ranks_have_serves_every_cut_of_the_heads,
                               begin_validating),
        cmocka_unit_test_setup(a_bias_that_is_cut_at_other_rows_than_its_weight_is_refused, begin_validating),
        cmocka_unit_test_setup(heads_that_ranks_hold_parts_of_are_not_split, begin_validating),
        cmocka_unit_test_setup(dims_are_merged_only_where_the_outer_one_is_cut, begin_validating),
        cmocka_unit_test_setup(an_input_without_a_layout_beside_others_is_refused, begin_validating),
        cmocka_unit_test_setup(layouts_over_other_axes_are_refused, begin_validating),
        cmocka_unit_test_setup(whole_shapes_that_do_not_fit_are_refused, begin_validating),
        cmocka_unit_test_setup(production_never_looks_at_layouts, begin_validating),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
