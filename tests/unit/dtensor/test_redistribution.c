/*
 * Transitions as step lists: the table of one axis (docs/reference/lowering.md), the order on several axes,
 * what is refused, and that a compile without memory fails and leaks nothing.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/status.h"
#include "dtensor/redistribution.h"
#include "mesh/placement.h"
#include "page.h"
#include "plan/lowering.h"

static const uint64_t shape[] = {12, 24, 6};
static const sw_grid tp = {1, {SW_AXIS_TP}, {4}};
static const sw_grid cp_tp = {
    2, {SW_AXIS_CP, SW_AXIS_TP},
     {2,          3         }
};
static const sw_grid all = {
    3, {SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP},
     {2,          2,          3         }
};

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

/* Placements by their texts, one a word: "S(1) S(1)". */
static sw_tensor_layout layout_of(const sw_grid *grid, const char *text)
{
    sw_placement places[SW_GRID_MAX_AXES];
    sw_tensor_layout layout;
    sw_error err = {0};

    for (uint32_t a = 0; a < grid->n_axes; a++) {
        size_t length = strcspn(text, " ");
        assert_int_equal(sw_placement_parse(&places[a], text, length, arena, &err), SW_OK);
        text += length + strspn(text + length, " ");
    }
    if (sw_tensor_layout_make(&layout, grid, SW_COUNT(shape), shape, places, &err) != SW_OK)
        fail_msg("%s", err.what);
    return layout;
}

static sw_redistribution made_of(const sw_grid *grid, const char *from, const char *to, uint32_t split)
{
    sw_tensor_layout before = layout_of(grid, from);
    sw_tensor_layout after = layout_of(grid, to);
    sw_redistribution made;
    sw_error err = {0};

    if (sw_redistribution_make(&made, &before, &after, split, (sw_grid_coord){{0}}, arena, &err) != SW_OK)
        fail_msg("%s", err.what);
    return made;
}

static void assert_list(const sw_grid *grid, const sw_step_list *list, const char *expected)
{
    sw_buffer text = {0};

    for (uint32_t i = 0; i < list->n; i++) {
        const sw_list_step *step = &list->steps[i];
        sw_buffer_printf(&text, "%s%s", i > 0 ? ", " : "", sw_step_kind_name(step->kind));
        for (uint32_t a = 0; a < grid->n_axes; a++) {
            if ((step->axes >> a & 1) != 0)
                sw_buffer_printf(&text, " %s", sw_axis_name(grid->axis[a]));
        }
    }
    assert_string_equal(sw_buffer_text(&text), expected);
    sw_buffer_clear(&text);
}

static void every_row_of_one_axis_has_its_collective_and_its_backward(void **state)
{
    /* clang-format off */
    static const struct {
        const char *from, *to, *forward, *whole, *split;
    } rows[] = {
        {"R",    "R",    "",                  "",              "all_reduce tp"},
        {"R",    "S(1)", "slice tp",          "all_gather tp", "all_gather tp"},
        {"R",    "P",    "keep tp",           "",              ""},
        {"S(1)", "R",    "all_gather tp",     "slice tp",      "reduce_scatter tp"},
        {"S(1)", "S(1)", "",                  "",              ""},
        {"S(0)", "S(1)", "all_to_all tp",     "all_to_all tp", "all_to_all tp"},
        {"S(1)", "P",    "pad tp",            "slice tp",      "slice tp"},
        {"P",    "R",    "all_reduce tp",     "",              "all_reduce tp"},
        {"P",    "S(1)", "reduce_scatter tp", "all_gather tp", "all_gather tp"},
        {"P",    "P",    "",                  "",              ""},
        {"R",    "S(1;seg=16+8r2)", "slice tp",    "exchange tp", "exchange tp"},
        {"S(1;seg=16+8r2)", "R",    "exchange tp", "slice tp",    "exchange tp"},
        {"S(1;seg=16+8r2)", "S(1)", "exchange tp", "exchange tp", "exchange tp"},
        {"S(1;seg=16+8r2)", "S(1;seg=16+8r2)", "", "",            "exchange tp"},
        {"P",    "S(1;seg=16+8r2)", "exchange tp", "exchange tp", "exchange tp"},
        {"R",    "S(1;rep=4)", "",                 "",            "all_reduce tp"},
    };
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < SW_COUNT(rows); i++) {
        sw_redistribution whole = made_of(&tp, rows[i].from, rows[i].to, 0);
        sw_redistribution split = made_of(&tp, rows[i].from, rows[i].to, 1);
        assert_list(&tp, &whole.forward, rows[i].forward);
        assert_list(&tp, &split.forward, rows[i].forward);
        assert_list(&tp, &whole.backward, rows[i].whole);
        assert_list(&tp, &split.backward, rows[i].split);
    }
}

/* sw_lower() and the compiler are two statements of one table. */
static void the_planner_lowers_to_the_same(void **state)
{
    static const char *const texts[] = {"R", "P", "S(0)", "S(1)"};

    (void)state;
    for (size_t i = 0; i < SW_COUNT(texts) * SW_COUNT(texts) * 2; i++) {
        const char *from = texts[i / 2 / SW_COUNT(texts)];
        const char *to = texts[i / 2 % SW_COUNT(texts)];
        sw_placement a;
        sw_placement b;
        assert_int_equal(sw_placement_parse(&a, from, strlen(from), arena, NULL), SW_OK);
        assert_int_equal(sw_placement_parse(&b, to, strlen(to), arena, NULL), SW_OK);
        sw_transition planned = sw_lower(a, b, i % 2 != 0);
        sw_redistribution made = made_of(&tp, from, to, i % 2 != 0);
        const char *forward = made.forward.n == 0 ? "none" : sw_step_kind_name(made.forward.steps[0].kind);
        const char *backward = made.backward.n == 0 ? "none" : sw_step_kind_name(made.backward.steps[0].kind);
        if (!planned.is_known) { /* the planner never asks for a partial sum of what is whole */
            assert_int_equal(b.kind, SW_PLACE_PARTIAL);
            continue;
        }
        assert_string_equal(sw_collective_name(planned.forward), forward);
        assert_string_equal(sw_collective_name(planned.backward), backward);
        if (planned.forward != SW_COLL_NONE && planned.forward != SW_COLL_ALL_REDUCE)
            assert_int_equal(made.forward.steps[0].dim, planned.dim);
    }
}

static void axes_on_one_dim_are_gathered_inside_out_and_cut_outside_in(void **state)
{
    (void)state;
    sw_redistribution made = made_of(&cp_tp, "S(1) S(1)", "R R", 3);
    assert_list(&cp_tp, &made.forward, "all_gather tp, all_gather cp");
    assert_list(&cp_tp, &made.backward, "reduce_scatter cp, reduce_scatter tp");
    made = made_of(&cp_tp, "P P", "S(1) S(1)", 0);
    assert_list(&cp_tp, &made.forward, "reduce_scatter cp, reduce_scatter tp");
    assert_list(&cp_tp, &made.backward, "all_gather tp, all_gather cp");
    made = made_of(&all, "R R R", "S(1) S(1) S(1)", 0);
    assert_list(&all, &made.forward, "slice cp, slice ep, slice tp");
    made = made_of(&all, "S(1) S(0) S(1)", "S(1) R R", 0);
    assert_list(&all, &made.forward, "all_gather tp, all_gather ep");
}

static void the_page_of_transitions_shows_what_is_compiled(void **state)
{
    page_table table;

    (void)state;
    page_open(&table, "transitions.md", "Several axes");
    assert_int_equal(table.n_rows, 8);
    for (size_t i = 0; i < table.n_rows; i++) {
        sw_redistribution made = made_of(&cp_tp, table.cells[i][0], table.cells[i][1], 0);
        assert_list(&cp_tp, &made.forward, table.cells[i][2]);
    }
    page_close(&table);
}

static void an_outer_axis_under_an_inner_one_is_exchanged_over_both(void **state)
{
    (void)state;
    sw_redistribution made = made_of(&cp_tp, "S(1) S(1)", "R S(1)", 0);
    assert_list(&cp_tp, &made.forward, "exchange cp tp");
    made = made_of(&cp_tp, "R S(1)", "S(1) S(1)", 0);
    assert_list(&cp_tp, &made.forward, "exchange cp tp");
    made = made_of(&cp_tp, "S(1) S(0)", "S(0) S(1)", 0);
    assert_list(&cp_tp, &made.forward, "exchange cp tp");
    made = made_of(&all, "S(0) S(1) S(1)", "S(0) R S(1)", 0); /* cp has no part in it */
    assert_list(&all, &made.forward, "exchange ep tp");
}

static void what_shrinks_comes_before_what_grows(void **state)
{
    (void)state;
    sw_redistribution made = made_of(&cp_tp, "S(0) P", "R S(1)", 0);
    assert_list(&cp_tp, &made.forward, "reduce_scatter tp, all_gather cp");
    made = made_of(&cp_tp, "S(0) R", "R S(1)", 0);
    assert_list(&cp_tp, &made.forward, "slice tp, all_gather cp");
    made = made_of(&cp_tp, "P S(0)", "R R", 0);
    assert_list(&cp_tp, &made.forward, "all_reduce cp, all_gather tp");
    made = made_of(&cp_tp, "S(1) P", "R S(1)", 0); /* gathering first would be larger than either end */
    assert_list(&cp_tp, &made.forward, "reduce_scatter tp, exchange cp tp");
}

static void only_what_changes_costs(void **state)
{
    (void)state;
    sw_redistribution made = made_of(&all, "S(1) P S(2)", "S(1) P S(2)", 0);
    assert_int_equal(made.forward.n, 0);
    assert_int_equal(made.backward.n, 0);
    const sw_grid one = {
        3, {SW_AXIS_CP, SW_AXIS_EP, SW_AXIS_TP},
         {1,          1,          1         }
    };
    made = made_of(&one, "S(1) P S(2)", "R S(1) P", 7);
    assert_int_equal(made.forward.n, 0);
    assert_int_equal(made.backward.n, 0);
}

static void replicas_are_read_once_and_from_near(void **state)
{
    (void)state;
    sw_tensor_layout from = layout_of(&tp, "S(1;rep=2)");
    sw_tensor_layout to = layout_of(&tp, "R");
    for (uint32_t rank = 0; rank < 4; rank++) {
        sw_redistribution made;
        sw_grid_coord at = {{rank}};
        assert_int_equal(sw_redistribution_make(&made, &from, &to, 0, at, arena, NULL), SW_OK);
        const sw_exchange *exchange = made.forward.steps[0].exchange;
        uint32_t partner =
            (rank + 2) % 4; /* holds the other half, with this rank's place among its replicas */
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(exchange->received[i].elems, i == rank || i == partner ? 12 * 12 * 6 : 0);
    }
}

static void a_tensor_of_2_to_the_57_elements_is_only_numbers(void **state)
{
    (void)state;
    const uint64_t rows = UINT64_C(1) << 40;
    const uint64_t dims[] = {rows, 1 << 17};
    const sw_segment segments[] = {
        {rows - 7, 1, 1},
        {7,        7, 4}
    };
    const sw_cut cut = {1, 2, segments};
    const sw_placement before[] = {
        {SW_PLACE_SHARD, 0, &cut}
    };
    const sw_placement after[] = {
        {SW_PLACE_SHARD, 1, NULL}
    };
    sw_tensor_layout from;
    sw_tensor_layout to;
    sw_redistribution made;

    assert_int_equal(sw_tensor_layout_make(&from, &tp, 2, dims, before, NULL), SW_OK);
    assert_int_equal(sw_tensor_layout_make(&to, &tp, 2, dims, after, NULL), SW_OK);
    assert_int_equal(sw_redistribution_make(&made, &from, &to, 0, (sw_grid_coord){{1}}, arena, NULL), SW_OK);
    const sw_exchange *exchange = made.forward.steps[0].exchange;
    uint64_t chunk = (rows - 7 + 3) / 4;
    assert_true(exchange->n_sent[0] == chunk << 15); /* its copy of the 7 rows is not wanted */
    assert_true(exchange->n_received[3] == (rows - 7 - 3 * chunk) << 15);
    assert_true(sw_step_out_elems(&made.forward.steps[0]) == rows << 15);
}

static void transitions_that_are_none_are_refused(void **state)
{
    (void)state;
    sw_tensor_layout a = layout_of(&tp, "R");
    sw_tensor_layout b = layout_of(&cp_tp, "R R");
    sw_tensor_layout c = a;
    sw_redistribution made;
    sw_error err = {0};

    c.dims[1] = 25;
    assert_int_equal(sw_redistribution_make(&made, &a, &b, 0, (sw_grid_coord){{0}}, arena, &err),
                     SW_E_ARGUMENT);
    assert_string_equal(err.what, "a transition between layouts of different grids or dims");
    assert_int_equal(sw_redistribution_make(&made, &a, &c, 0, (sw_grid_coord){{0}}, arena, &err),
                     SW_E_ARGUMENT);
    assert_string_equal(err.what, "dim 1 is 24 before a transition and 25 after");
    assert_int_equal(sw_redistribution_make(&made, &a, &a, 0, (sw_grid_coord){{4}}, arena, &err),
                     SW_E_ARGUMENT);
    assert_string_equal(err.what, "index 4 of tp, which has 4 ranks");
}

static void a_compile_without_memory_fails_and_leaks_nothing(void **state)
{
    (void)state;
    sw_tensor_layout from = layout_of(&all, "S(1;seg=16+8r2) P S(0)");
    sw_tensor_layout to = layout_of(&all, "R S(1) S(1)");
    int64_t alive = sw_alloc_live();

    for (uint64_t n = 1;; n++) {
        sw_redistribution made;
        sw_arena *own = sw_arena_create(0);
        assert_non_null(own);
        sw_alloc_fail_at(n);
        sw_status status = sw_redistribution_make(&made, &from, &to, 7, (sw_grid_coord){{0}}, own, NULL);
        sw_alloc_fail_at(0);
        sw_arena_destroy(own);
        assert_int_equal(sw_alloc_live(), alive);
        if (status == SW_OK) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(status, SW_E_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_one_axis_has_its_collective_and_its_backward),
        cmocka_unit_test(the_planner_lowers_to_the_same),
        cmocka_unit_test(axes_on_one_dim_are_gathered_inside_out_and_cut_outside_in),
        cmocka_unit_test(the_page_of_transitions_shows_what_is_compiled),
        cmocka_unit_test(an_outer_axis_under_an_inner_one_is_exchanged_over_both),
        cmocka_unit_test(what_shrinks_comes_before_what_grows),
        cmocka_unit_test(only_what_changes_costs),
        cmocka_unit_test(replicas_are_read_once_and_from_near),
        cmocka_unit_test(a_tensor_of_2_to_the_57_elements_is_only_numbers),
        cmocka_unit_test(transitions_that_are_none_are_refused),
        cmocka_unit_test(a_compile_without_memory_fails_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
