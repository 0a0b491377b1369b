/* Building blocks of a plan: what is equal is kept once, what grows keeps its items, names become patterns.
 */
#include "plan/intern.h"

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/plan_make.h"

static sw_plan *empty(void)
{
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    assert_int_equal(sw_mesh_create(&mesh, "tp=2", 0, NULL), SW_OK);
    assert_int_equal(sw_plan_make_empty(&plan, mesh, NULL), SW_OK);
    sw_mesh_destroy(mesh);
    return plan;
}

static void a_grown_array_keeps_its_items(void **state)
{
    sw_plan *plan = empty();
    uint64_t *items = NULL;
    uint32_t capacity = 0;
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(sw_plan_grow(plan->arena, (void **)&items, &capacity, i, sizeof *items));
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    assert_true(capacity >= 1000);
    assert_false(sw_plan_grow(plan->arena, (void **)&items, &(uint32_t){0}, UINT32_MAX, sizeof *items));
    sw_plan_destroy(plan);
}

static void equal_cuts_are_one(void **state)
{
    const sw_segment a[] = {
        {16, 0, 0},
        {4,  0, 2}
    };
    const sw_segment b[] = {
        {16, 1, 1},
        {4,  1, 2}
    }; /* 1 means the same as 0 */
    const sw_segment c[] = {
        {16, 0, 0},
        {4,  0, 4}
    };
    sw_plan *plan = empty();
    const sw_cut *first = sw_plan_cut(plan, 1, a, 2);
    (void)state;
    assert_non_null(first);
    assert_ptr_equal(first, sw_plan_cut(plan, 1, b, 2));
    assert_ptr_not_equal(first, sw_plan_cut(plan, 1, c, 2));
    assert_ptr_not_equal(first, sw_plan_cut(plan, 2, a, 2));
    assert_ptr_not_equal(first, sw_plan_cut(plan, 1, a, 1));
    assert_int_equal(first->n_segments, 2);
    assert_int_equal(first->segments[1].replicas, 2);
    assert_ptr_not_equal(first->segments, a); /* copied */
    sw_plan_destroy(plan);
}

static void equal_shapes_are_one_and_overflow_is_none(void **state)
{
    const uint64_t dims[] = {4, 8, 16};
    const uint64_t huge[] = {UINT64_MAX, 2};
    sw_plan *plan = empty();
    const sw_shape *shape = sw_plan_shape(plan, dims, 3);
    (void)state;
    assert_non_null(shape);
    assert_int_equal(shape->elems, 512);
    assert_ptr_equal(shape, sw_plan_shape(plan, (const uint64_t[]){4, 8, 16}, 3));
    assert_ptr_not_equal(shape, sw_plan_shape(plan, dims, 2));
    assert_null(sw_plan_shape(plan, huge, 2));
    assert_int_equal(sw_plan_shape(plan, dims, 0)->elems, 1);
    sw_plan_destroy(plan);
}

static void equal_facts_have_one_index(void **state)
{
    sw_plan *plan = empty();
    sw_facts a;
    sw_facts b;
    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    a.role = SW_ROLE_COLWISE;
    b.role = SW_ROLE_ROWWISE;
    uint32_t first = sw_plan_intern_facts(plan, &a);
    assert_int_equal(sw_plan_intern_facts(plan, &a), first);
    uint32_t second = sw_plan_intern_facts(plan, &b);
    assert_int_not_equal(first, second);
    assert_int_equal(plan->facts[first].role, SW_ROLE_COLWISE);
    assert_int_equal(plan->facts[second].role, SW_ROLE_ROWWISE);
    /* a change in the array does not touch what later ones are compared with */
    plan->facts[first].role = SW_ROLE_NORM;
    assert_int_equal(sw_plan_intern_facts(plan, &a), first);
    sw_plan_destroy(plan);
}

static void specs_are_found_by_their_whole_name(void **state)
{
    sw_plan *plan = empty();
    sw_spec *spec = NULL;
    bool is_new = false;
    (void)state;
    assert_int_equal(sw_plan_spec_at(plan, "model.layers.0.mlp.x", 18, &spec, &is_new, NULL), SW_OK);
    assert_true(is_new);
    assert_string_equal(spec->fqn, "model.layers.0.mlp");
    assert_int_equal(spec->layer, -1);
    assert_int_equal(spec->region_dispatch, -1);
    assert_int_equal(sw_plan_spec_at(plan, "model.layers.0.mlp", 18, &spec, &is_new, NULL), SW_OK);
    assert_false(is_new);
    assert_ptr_equal(spec, sw_plan_find_spec(plan, "model.layers.0.mlp", 18));
    assert_null(sw_plan_find_spec(plan, "model.layers.0", 14));
    assert_int_equal(sw_plan_spec_at(plan, "", 0, &spec, &is_new, NULL), SW_OK); /* the root */
    assert_true(is_new);
    assert_string_equal(spec->fqn, "");
    sw_plan_destroy(plan);
}

static void parameters_are_appended_in_order(void **state)
{
    sw_plan *plan = empty();
    sw_spec *spec = NULL;
    bool is_new = false;
    (void)state;
    assert_int_equal(sw_plan_spec_at(plan, "a", 1, &spec, &is_new, NULL), SW_OK);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(sw_spec_add_param(plan, spec, (sw_spec_param){"w", 1, i, 0}, NULL), SW_OK);
    assert_int_equal(spec->n_params, 100);
    assert_int_equal(spec->params[99].param, 99);
    sw_plan_destroy(plan);
}

static void check_pattern(const char *name, const char *pattern)
{
    sw_buffer out = {0};
    sw_plan_put_pattern(&out, name, strlen(name));
    assert_string_equal(sw_buffer_text(&out), pattern);
    sw_buffer_clear(&out);
}

static void segments_of_digits_are_counts(void **state)
{
    (void)state;
    check_pattern("model.layers.12.mlp.experts.3.w1.weight", "model.layers.#.mlp.experts.#.w1.weight");
    check_pattern("h.0", "h.#");
    check_pattern("0", "#");
    check_pattern("w2.a1.1a", "w2.a1.1a");
    check_pattern("", "");
    check_pattern("a..b", "a..b");
    check_pattern("a.1.", "a.#.");
}

static void every_building_block_says_when_memory_is_gone(void **state)
{
    const sw_segment segments[] = {
        {16, 0, 0}
    };
    const uint64_t dims[] = {4};
    (void)state;
    for (int what = 0; what < 4; what++) {
        for (uint64_t n = 1; n < 64; n++) {
            sw_plan *plan = empty();
            sw_facts facts;
            sw_spec *spec = NULL;
            bool is_new = false;
            bool done = false;
            memset(&facts, 0, sizeof facts);
            sw_alloc_fail_at(n);
            switch (what) {
            case 0:
                done = sw_plan_cut(plan, 1, segments, 1) != NULL;
                break;
            case 1:
                done = sw_plan_shape(plan, dims, 1) != NULL;
                break;
            case 2:
                done = sw_plan_intern_facts(plan, &facts) != UINT32_MAX;
                break;
            default:
                done = sw_plan_spec_at(plan, "a", 1, &spec, &is_new, NULL) == SW_OK;
                break;
            }
            sw_alloc_fail_at(0);
            sw_plan_destroy(plan);
            if (done)
                break;
        }
    }
    assert_int_equal(sw_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grown_array_keeps_its_items),
        cmocka_unit_test(equal_cuts_are_one),
        cmocka_unit_test(equal_shapes_are_one_and_overflow_is_none),
        cmocka_unit_test(equal_facts_have_one_index),
        cmocka_unit_test(specs_are_found_by_their_whole_name),
        cmocka_unit_test(parameters_are_appended_in_order),
        cmocka_unit_test(segments_of_digits_are_counts),
        cmocka_unit_test(every_building_block_says_when_memory_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
