/* Of random layouts over random grids each element of the tensor is counted by one rank. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "layout_case.h"
#include "parallel/owned.h"

static layout_case c;

static bool owns(const sw_range *ranges, uint32_t n, int64_t at)
{
    for (uint32_t i = 0; i < n; i++) {
        if (at >= (int64_t)ranges[i].begin && at < (int64_t)ranges[i].end)
            return true;
    }
    return false;
}

static sw_grid_coord coord_of(uint32_t rank)
{
    sw_grid_coord at = {{0}};

    for (uint32_t a = 0; a < c.grid.n_axes; a++)
        at.at[a] = layout_case_coord(&c, rank, a);
    return at;
}

static bool each_element_is_counted_once(gen *g)
{
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    uint32_t times[CASE_MAX_ELEMS] = {0};
    sw_grid grid;
    sw_tensor_layout layout;
    sw_arena *arena = sw_arena_create(0);
    bool is_right = true;

    layout_case_grid(g, &grid, CASE_MAX_RANKS);
    uint32_t n_dims = layout_case_shape(g, dims, CASE_MAX_ELEMS);
    layout_case_places(g, &c, &grid, n_dims, dims);
    assert_int_equal(sw_tensor_layout_make(&layout, &grid, n_dims, dims, c.places, NULL), SW_OK);
    for (uint32_t rank = 0; rank < c.n_ranks; rank++) {
        const sw_range *ranges = NULL;
        uint32_t n = 0;
        uint64_t last = 0;
        assert_int_equal(sw_owned_elements(&layout, coord_of(rank), arena, &ranges, &n, NULL), SW_OK);
        for (uint32_t i = 0; i < n; i++) {
            is_right = is_right && ranges[i].begin >= last && ranges[i].end > ranges[i].begin;
            last = ranges[i].end;
        }
        is_right = is_right && last <= layout_case_local_elems(&c, rank);
        for (uint64_t flat = 0; flat < layout_case_elems(&c); flat++)
            times[flat] += owns(ranges, n, layout_case_at(&c, rank, flat));
    }
    for (uint64_t flat = 0; flat < layout_case_elems(&c); flat++)
        is_right = is_right && times[flat] == 1;
    sw_arena_destroy(arena);
    return is_right;
}

static void bug_54_each_element_of_any_layout_is_counted_by_one_rank(void **state)
{
    (void)state;
    assert_true(gen_holds(each_element_is_counted_once, 2000));
}

/* Two key heads of two rows over four ranks: each is held twice, and counted by the first. */
static void replicas_of_a_piece_are_counted_by_the_first(void **state)
{
    static const sw_segment segment = {.extent = 4, .unit = 1, .replicas = 2};
    static const sw_cut cut = {.n_groups = 1, .n_segments = 1, .segments = &segment};
    const sw_placement place = {SW_PLACE_SHARD, 0, &cut};
    const sw_grid grid = {1, {SW_AXIS_TP}, {4}};
    sw_tensor_layout layout;
    sw_arena *arena = sw_arena_create(0);

    (void)state;
    assert_int_equal(sw_tensor_layout_make(&layout, &grid, 2, (const uint64_t[]){4, 3}, &place, NULL), SW_OK);
    for (uint32_t rank = 0; rank < 4; rank++) {
        const sw_range *ranges = NULL;
        uint32_t n = 0;
        assert_int_equal(sw_owned_elements(&layout, (sw_grid_coord){{rank}}, arena, &ranges, &n, NULL),
                         SW_OK);
        assert_int_equal(n, rank % 2 == 0 ? 1 : 0);
        if (n == 1) {
            assert_int_equal(ranges[0].begin, 0);
            assert_int_equal(ranges[0].end, 6);
        }
    }
    sw_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bug_54_each_element_of_any_layout_is_counted_by_one_rank),
        cmocka_unit_test(replicas_of_a_piece_are_counted_by_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
