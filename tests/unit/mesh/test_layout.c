/* Layouts: one spelling, what is refused, grids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "mesh/layout.h"

#define R                                                                                                    \
    {                                                                                                        \
        SW_PLACE_REPLICATE, 0, NULL                                                                          \
    }
#define P                                                                                                    \
    {                                                                                                        \
        SW_PLACE_PARTIAL, 0, NULL                                                                            \
    }
#define S(d)                                                                                                 \
    {                                                                                                        \
        SW_PLACE_SHARD, d, NULL                                                                              \
    }

static const sw_grid cp_tp = {
    2, {SW_AXIS_CP, SW_AXIS_TP},
     {2,          3         }
};
static const uint64_t shape[] = {4, 13};

static sw_tensor_layout make(const sw_grid *grid, const sw_placement *places)
{
    sw_tensor_layout layout;
    sw_error err = {0};
    if (sw_tensor_layout_make(&layout, grid, 2, shape, places, &err) != SW_OK)
        fail_msg("%s", err.what);
    return layout;
}

static void assert_refused(const sw_grid *grid, uint32_t n_dims, const uint64_t *dims,
                           const sw_placement *places, sw_status status, const char *what)
{
    sw_tensor_layout layout;
    sw_error err = {0};
    assert_int_equal(sw_tensor_layout_make(&layout, grid, n_dims, dims, places, &err), status);
    assert_string_equal(err.what, what);
}

static void one_layout_has_one_spelling(void **state)
{
    (void)state;
    const sw_segment thrice = {0, 1, 3};
    const sw_cut copies = {1, 1, &thrice};
    const sw_segment once = {13, 0, 0};
    const sw_cut nothing_said = {1, 1, &once};
    const sw_segment by_twos = {0, 2, 1};
    const sw_cut even = {1, 1, &by_twos};
    const sw_placement places[][2] = {
        {{SW_PLACE_SHARD, 0, &even}, R                                  },
        {S(0),                       R                                  },
        {R,                          {SW_PLACE_SHARD, 1, &copies}       },
        {R,                          R                                  },
        {R,                          {SW_PLACE_SHARD, -1, &nothing_said}},
        {R,                          S(1)                               }
    };
    for (size_t i = 0; i < SW_COUNT(places); i += 2) {
        sw_tensor_layout a = make(&cp_tp, places[i]);
        sw_tensor_layout b = make(&cp_tp, places[i + 1]);
        assert_true(sw_tensor_layout_equal(&a, &b));
    }
    const sw_grid one = {1, {SW_AXIS_TP}, {1}};
    const sw_placement partial[] = {P};
    const sw_placement whole[] = {R};
    sw_tensor_layout a = make(&one, partial);
    sw_tensor_layout b = make(&one, whole);
    assert_true(sw_tensor_layout_equal(&a, &b));
}

static void a_layout_that_does_not_fit_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const uint64_t large[] = {UINT64_MAX / 4, 2, 1, 1, 1, 1};
    const sw_segment twice = {13, 1, 2};
    const sw_cut cut = {1, 1, &twice};
    const sw_segment by_unit = {0, 3, 1};
    const sw_cut units = {1, 1, &by_unit};
    const sw_placement replicas[] = {
        R, {SW_PLACE_SHARD, 1, &cut}
    };
    const sw_placement nested[] = {
        S(1), {SW_PLACE_SHARD, 1, &units}
    };
    const sw_placement absent[] = {R, S(2)};
    const sw_placement whole[] = {R, R};
    const sw_placement wrong[] = {
        R, {(sw_placement_kind)7, 0, NULL}
    };
    const sw_grid none = {1, {SW_AXIS_TP}, {0}};
    const sw_grid four = {4, {SW_AXIS_TP}, {2}};

    assert_refused(&cp_tp, 2, shape, replicas, SW_E_PLAN,
                   "dim 1 over tp: segment 0 of the cut: 2 replicas do not divide 3 ranks");
    assert_refused(&cp_tp, 2, shape, nested, SW_E_PLAN,
                   "dim 1 over tp: segment 0 of the cut: 7 rows are not whole units of 3");
    assert_refused(&cp_tp, 2, shape, absent, SW_E_PLAN, "dim 2 over tp of a tensor of 2 dims");
    assert_refused(&cp_tp, 2, shape, wrong, SW_E_ARGUMENT, "a placement of kind 7, which is none");
    assert_refused(&cp_tp, 6, large, whole, SW_E_LIMIT, "a tensor of 6 dims, at most 5 are possible");
    assert_refused(&cp_tp, 2, large, whole, SW_E_LIMIT, "a tensor whose dims 0 to 0 do not fit an address");
    assert_refused(&none, 2, shape, whole, SW_E_ARGUMENT,
                   "a grid without ranks, or of more than 32 bits count");
    assert_refused(&four, 2, shape, whole, SW_E_ARGUMENT, "a grid of 4 axes");
}

static void a_grid_has_the_sizes_and_the_order_of_the_mesh(void **state)
{
    (void)state;
    static const sw_axis axes[] = {SW_AXIS_CP, SW_AXIS_TP, SW_AXIS_DP, SW_AXIS_PP};
    sw_error err = {0};
    sw_mesh *mesh = NULL;
    sw_grid grid;
    assert_int_equal(sw_mesh_create(&mesh, "dp=2,cp=3,tp=4", 0, NULL), SW_OK);
    assert_int_equal(sw_grid_of_mesh(&grid, mesh, axes, 2, &err), SW_OK);
    assert_int_equal(grid.size[0], 3);
    assert_int_equal(grid.size[1], 4);
    assert_int_equal(sw_grid_ranks(&grid, 3), 12);
    assert_int_equal(sw_grid_ranks(&grid, 2), 4);
    sw_grid_coord at = sw_grid_member(&grid, 3, (sw_grid_coord){{0}}, 6);
    assert_int_equal(at.at[0], 1);
    assert_int_equal(at.at[1], 2);
    assert_int_equal(sw_grid_index(&grid, 3, at), 6);
    assert_int_equal(sw_grid_index(&grid, 1, at), 1);

    assert_int_equal(sw_grid_of_mesh(&grid, mesh, axes, 3, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a layout over tp and then dp");
    assert_int_equal(sw_grid_of_mesh(&grid, mesh, axes, 4, &err), SW_E_LIMIT);
    assert_string_equal(err.what, "a layout over 4 axes, at most 3 are possible");
    sw_mesh_destroy(mesh);
}

static void the_axes_of_derived_experts_are_a_grid_of_their_own(void **state)
{
    (void)state;
    static const sw_axis experts[] = {SW_AXIS_PP, SW_AXIS_EDP, SW_AXIS_EP};
    static const sw_axis mixed[] = {SW_AXIS_EP, SW_AXIS_TP};
    static const sw_axis turned[] = {SW_AXIS_EP, SW_AXIS_EDP};
    static const sw_axis twice[] = {SW_AXIS_DP, SW_AXIS_DP};
    sw_error err = {0};
    sw_mesh *mesh = NULL;
    sw_grid grid;
    assert_int_equal(sw_mesh_create(&mesh, "pp=2,cp=3,tp=4", 6, NULL), SW_OK);
    assert_int_equal(sw_grid_of_mesh(&grid, mesh, experts, 3, &err), SW_OK);
    assert_int_equal(grid.size[1], 2);
    assert_int_equal(grid.size[2], 6);

    assert_int_equal(sw_grid_of_mesh(&grid, mesh, mixed, 2, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a layout over ep and tp, which number the same ranks");
    assert_string_equal(err.help, "take edp and the derived ep alone, or the axes that they are cut out of");
    assert_int_equal(sw_grid_of_mesh(&grid, mesh, turned, 2, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a layout over ep and then edp");
    assert_int_equal(sw_grid_of_mesh(&grid, mesh, twice, 2, &err), SW_E_ARGUMENT);
    assert_string_equal(err.what, "a layout over dp and then dp");
    sw_mesh_destroy(mesh);
}

static void a_layout_is_told_as_a_plan_writes_it(void **state)
{
    (void)state;
    const sw_placement places[] = {P, S(-1)};
    sw_tensor_layout layout = make(&cp_tp, places);
    char told[SW_TENSOR_LAYOUT_TEXT];

    sw_tensor_layout_text(&layout, told);
    assert_string_equal(told, "cp=P tp=S(1)");
    assert_int_equal(sw_tensor_layout_kind(&layout, 0), SW_PLACE_PARTIAL);
    assert_int_equal(sw_tensor_layout_kind(&layout, 1), SW_PLACE_SHARD);
}

static void grids_are_equal_by_axes_and_sizes(void **state)
{
    (void)state;
    sw_grid other = cp_tp;

    assert_true(sw_grid_equal(&cp_tp, &other));
    other.size[1] = 4;
    assert_false(sw_grid_equal(&cp_tp, &other));
    other = cp_tp;
    other.axis[0] = SW_AXIS_DP;
    assert_false(sw_grid_equal(&cp_tp, &other));
    other = cp_tp;
    other.n_axes = 1;
    assert_false(sw_grid_equal(&cp_tp, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_layout_has_one_spelling),
        cmocka_unit_test(a_layout_that_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(a_grid_has_the_sizes_and_the_order_of_the_mesh),
        cmocka_unit_test(a_layout_is_told_as_a_plan_writes_it),
        cmocka_unit_test(grids_are_equal_by_axes_and_sizes),
        cmocka_unit_test(the_axes_of_derived_experts_are_a_grid_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
