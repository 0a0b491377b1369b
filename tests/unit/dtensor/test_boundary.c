/* Sides of boundaries: several tensors, found by name and by position, each with its own transition. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/status.h"
#include "dtensor/boundary.h"

static const sw_grid tp = {1, {SW_AXIS_TP}, {2}};
static const sw_placement whole = {SW_PLACE_REPLICATE, 0, NULL};
static const sw_placement partial = {SW_PLACE_PARTIAL, 0, NULL};
static const sw_placement sequence = {SW_PLACE_SHARD, 1, NULL};
static const sw_placement last = {SW_PLACE_SHARD, -1, NULL};
static const uint64_t hidden[] = {2, 8, 6};
static const uint64_t logits[] = {16, 10};

static void each_output_has_its_own_transition(void **state)
{
    (void)state;
    const sw_boundary_entry entries[] = {
        {"hidden_states", 0, 3, hidden, &partial,  &sequence, 0},
        {"router_logits", 2, 2, logits, &last,     &whole,    0},
        {"residual",      1, 3, hidden, &sequence, &sequence, 0},
    };
    sw_arena *arena = sw_arena_create(0);
    sw_boundary_side side;
    sw_error err = {0};

    if (sw_boundary_side_make(&side, &tp, entries, 3, (sw_grid_coord){{1}}, arena, &err) != SW_OK)
        fail_msg("%s", err.what);
    assert_int_equal(side.n, 3);
    const sw_boundary_tensor *router = sw_boundary_at(&side, 2);
    assert_non_null(router);
    assert_string_equal(router->name, "router_logits");
    assert_int_equal(router->move.forward.steps[0].kind, SW_STEP_ALL_GATHER);
    assert_int_equal(router->move.forward.steps[0].dim, 1);
    assert_int_equal(router->move.forward.steps[0].in[1], 5);
    assert_ptr_equal(router, sw_boundary_named(&side, "router_logits"));
    assert_int_equal(sw_boundary_named(&side, "hidden_states")->move.forward.steps[0].kind,
                     SW_STEP_REDUCE_SCATTER);
    assert_int_equal(sw_boundary_at(&side, 1)->move.forward.n, 0);
    assert_null(sw_boundary_named(&side, "hidden"));
    assert_null(sw_boundary_at(&side, 3));
    sw_arena_destroy(arena);
}

static void a_tensor_that_cannot_be_laid_out_so_is_named(void **state)
{
    (void)state;
    const sw_boundary_entry entries[] = {
        {"hidden_states", 0, 3, hidden, &whole, &whole,    1},
        {"position_ids",  0, 1, hidden, &whole, &sequence, 0},
    };
    sw_arena *arena = sw_arena_create(0);
    sw_boundary_side side = {0};
    sw_error err = {0};

    assert_int_equal(sw_boundary_side_make(&side, &tp, entries, 2, (sw_grid_coord){{0}}, arena, &err),
                     SW_E_PLAN);
    assert_string_equal(err.what, "'position_ids': dim 1 over tp of a tensor of 1 dims");
    assert_int_equal(side.n, 0);
    sw_arena_destroy(arena);
}

static void a_side_of_nothing_is_empty(void **state)
{
    (void)state;
    sw_arena *arena = sw_arena_create(0);
    sw_boundary_side side;

    assert_int_equal(sw_boundary_side_make(&side, &tp, NULL, 0, (sw_grid_coord){{0}}, arena, NULL), SW_OK);
    assert_int_equal(side.n, 0);
    assert_null(sw_boundary_at(&side, 0));
    sw_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_output_has_its_own_transition),
        cmocka_unit_test(a_tensor_that_cannot_be_laid_out_so_is_named),
        cmocka_unit_test(a_side_of_nothing_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
