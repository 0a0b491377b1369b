/* Shares: what ranks hold when axes share a dim, layouts of gradients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "dtensor/share.h"

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

static sw_range only_range(const sw_tensor_layout *layout, uint32_t cp, uint32_t tp)
{
    sw_arena *arena = sw_arena_create(0);
    const sw_share all = {.holder = {{cp, tp}}};
    sw_rows rows;
    assert_int_equal(sw_tensor_layout_rows(&rows, layout, 1, &all, arena, NULL), SW_OK);
    assert_true(rows.n <= 1);
    sw_range range = rows.n == 0 ? (sw_range){0, 0} : rows.ranges[0];
    sw_arena_destroy(arena);
    return range;
}

static void the_outer_axis_cuts_first(void **state)
{
    (void)state;
    const sw_placement both[] = {S(1), S(-1)};
    sw_tensor_layout layout = make(&cp_tp, both);
    /* 13 rows over cp: 7 and 6; each of them over tp: 3, 3, 1 and 2, 2, 2 */
    const sw_range expected[2][3] = {
        {{0, 3}, {3, 6},  {6, 7}  },
        {{7, 9}, {9, 11}, {11, 13}}
    };
    for (uint32_t cp = 0; cp < 2; cp++) {
        for (uint32_t tp = 0; tp < 3; tp++) {
            sw_range found = only_range(&layout, cp, tp);
            assert_int_equal(found.begin, expected[cp][tp].begin);
            assert_int_equal(found.end, expected[cp][tp].end);
        }
    }
    uint64_t local[SW_LAYOUT_MAX_DIMS];
    sw_tensor_layout_local(&layout,
                           (sw_grid_coord){
                               {0, 2}
    },
                           local);
    assert_int_equal(local[0], 4);
    assert_int_equal(local[1], 1);
    assert_int_equal(sw_tensor_layout_elems(&layout,
                                            (sw_grid_coord){
                                                {0, 2}
    }),
                     4);
}

static void gradients_are_laid_out_by_the_one_logical_loss(void **state)
{
    (void)state;
    const sw_placement places[] = {P, R};
    sw_tensor_layout layout = make(&cp_tp, places);
    sw_tensor_layout gradient;
    sw_tensor_layout_gradient(&gradient, &layout, 0);
    assert_false(gradient.is_summed[0]); /* of P is R */
    assert_false(gradient.is_summed[1]); /* of R is R */
    sw_tensor_layout_gradient(&gradient, &layout, 3);
    assert_false(gradient.is_summed[0]);
    assert_true(gradient.is_summed[1]); /* but for a split consumer P */

    const sw_segment segments[] = {
        {9, 1, 1},
        {4, 1, 3}
    };
    const sw_cut cut = {1, 2, segments};
    const sw_placement shards[] = {
        S(0), {SW_PLACE_SHARD, 1, &cut}
    };
    layout = make(&cp_tp, shards);
    sw_tensor_layout_gradient(&gradient, &layout, 3);
    assert_false(gradient.is_summed[0]); /* of S is S */
    assert_true(gradient.is_summed[1]);  /* replicas that were used for different things */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outer_axis_cuts_first),
        cmocka_unit_test(gradients_are_laid_out_by_the_one_logical_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
