/* What a run needs: workspace by dtype, and the lists that cannot be run. Runs are
 * tests/mpi/test_redistribution.c. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/status.h"
#include "dtensor/run.h"

static const sw_grid cp_tp = {
    2, {SW_AXIS_CP, SW_AXIS_TP},
     {2,          2         }
};
static const sw_placement whole = {SW_PLACE_REPLICATE, 0, NULL};
static const sw_placement partial = {SW_PLACE_PARTIAL, 0, NULL};
static const sw_placement rows = {SW_PLACE_SHARD, 0, NULL};

static sw_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = sw_arena_create(0);
    return arena == NULL ? -1 : 0;
}

static int close_arena(void **state)
{
    (void)state;
    sw_arena_destroy(arena);
    return 0;
}

static sw_step_list list_of(const sw_placement *from, const sw_placement *to)
{
    static const uint64_t dims[] = {64, 100};
    sw_tensor_layout before;
    sw_tensor_layout after;
    sw_step_list list;

    assert_int_equal(sw_tensor_layout_make(&before, &cp_tp, 2, dims, from, NULL), SW_OK);
    assert_int_equal(sw_tensor_layout_make(&after, &cp_tp, 2, dims, to, NULL), SW_OK);
    assert_int_equal(sw_step_list_make(&list, &before, &after, (sw_grid_coord){{0}}, arena, NULL), SW_OK);
    return list;
}

static size_t workspace_of(const sw_step_list *list, sw_dtype dtype)
{
    size_t bytes = 0;
    assert_int_equal(sw_step_list_workspace(list, dtype, &bytes, NULL), SW_OK);
    return bytes;
}

static void one_collective_needs_no_workspace(void **state)
{
    (void)state;
    sw_step_list list = list_of((const sw_placement[]){rows, whole}, (const sw_placement[]){whole, whole});
    assert_int_equal(list.n, 1);
    assert_int_equal(workspace_of(&list, SW_DTYPE_F64), 0);
}

static void a_tensor_between_two_steps_is_in_the_workspace(void **state)
{
    (void)state;
    sw_step_list list = list_of((const sw_placement[]){rows, rows}, (const sw_placement[]){whole, whole});
    assert_int_equal(list.n, 2);
    assert_int_equal(workspace_of(&list, SW_DTYPE_F32), 32 * 100 * 4 + 64);
    assert_int_equal(workspace_of(&list, SW_DTYPE_BF16), 32 * 100 * 2 + 64);
}

static void sums_of_short_floats_under_way_are_f32(void **state)
{
    (void)state;
    const sw_segment segments[] = {
        {24, 1, 1},
        {40, 1, 1}
    };
    const sw_cut cut = {1, 2, segments};
    const sw_placement parts = {SW_PLACE_SHARD, 0, &cut};
    sw_step_list list = list_of((const sw_placement[]){whole, partial}, (const sw_placement[]){whole, parts});
    /* half of the rows goes out, the other half comes in */
    assert_int_equal(workspace_of(&list, SW_DTYPE_F32), 2 * (32 * 100 * 4 + 64));
    assert_int_equal(workspace_of(&list, SW_DTYPE_BF16), 2 * (32 * 100 * 2 + 64) + 32 * 100 * 4 + 64);
}

static void what_cannot_be_added_or_has_no_bytes_is_refused(void **state)
{
    (void)state;
    sw_step_list moved = list_of((const sw_placement[]){rows, whole}, (const sw_placement[]){whole, whole});
    sw_step_list added =
        list_of((const sw_placement[]){partial, whole}, (const sw_placement[]){whole, whole});
    size_t bytes = 1;
    sw_error err = {0};

    assert_int_equal(sw_step_list_workspace(&moved, SW_DTYPE_BOOL, &bytes, &err), SW_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(sw_step_list_workspace(&added, SW_DTYPE_BOOL, &bytes, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a sum of BOOL elements");
    assert_int_equal(sw_step_list_workspace(&moved, SW_DTYPE_F4, &bytes, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a transition of F4 elements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_collective_needs_no_workspace),
        cmocka_unit_test(a_tensor_between_two_steps_is_in_the_workspace),
        cmocka_unit_test(sums_of_short_floats_under_way_are_f32),
        cmocka_unit_test(what_cannot_be_added_or_has_no_bytes_is_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
