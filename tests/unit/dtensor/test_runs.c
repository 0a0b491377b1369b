/* Boxes packed, unpacked and copied, against loops over their elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dtensor/runs.h"
#include "gen.h"

enum { MOST = 7, MOST_ELEMS = 16807, N_CASES = 3000 };

/* A random box and the places of its elements, in order. */
typedef struct box_case {
    sw_box box;
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    uint32_t n_dims;
    sw_range ranges[SW_LAYOUT_MAX_DIMS][MOST];
    uint64_t places[MOST_ELEMS];
} box_case;

/* Rows of a dim that are in the box: `is_in`. */
static void set_rows(box_case *c, uint32_t d, const bool *is_in)
{
    sw_rows *rows = &c->box.along[d];

    *rows = (sw_rows){0, 0, c->ranges[d]};
    for (uint64_t row = 0; row < c->dims[d]; row++) {
        if (!is_in[row])
            continue;
        if (row == 0 || !is_in[row - 1])
            c->ranges[d][rows->n++] = (sw_range){row, row};
        c->ranges[d][rows->n - 1].end++;
        rows->count++;
    }
}

static void list_places(box_case *c, bool is_in[SW_LAYOUT_MAX_DIMS][MOST])
{
    uint64_t elems = 1;
    uint64_t n = 0;

    for (uint32_t d = 0; d < c->n_dims; d++)
        elems *= c->dims[d];
    for (uint64_t flat = 0; flat < elems; flat++) {
        uint64_t rest = flat;
        bool is_inside = true;
        for (uint32_t d = c->n_dims; d-- > 0; rest /= c->dims[d])
            is_inside = is_inside && is_in[d][rest % c->dims[d]];
        if (is_inside)
            c->places[n++] = flat;
    }
    c->box.elems = n;
}

/* A box; with `like` one with as many rows along each dim. */
static void make_box(gen *g, box_case *c, const box_case *like)
{
    bool is_in[SW_LAYOUT_MAX_DIMS][MOST] = {{false}};

    c->n_dims = like == NULL ? gen_below(g, SW_LAYOUT_MAX_DIMS + 1) : like->n_dims;
    for (uint32_t d = 0; d < c->n_dims; d++) {
        uint32_t wanted = like == NULL ? gen_below(g, MOST) : (uint32_t)like->box.along[d].count;
        uint32_t extent = gen_between(g, wanted, gen_below(g, 3) == 0 ? wanted : MOST);
        c->dims[d] = extent;
        for (uint32_t n = 0; n < wanted;) {
            uint32_t row = gen_below(g, extent);
            n += is_in[d][row] ? 0 : 1;
            is_in[d][row] = true;
        }
        set_rows(c, d, is_in[d]);
    }
    list_places(c, is_in);
}

static bool runs_visit_the_box_in_order(gen *g)
{
    static box_case c;
    sw_runs runs;
    sw_run run;
    sw_run before = {UINT64_MAX, 0};
    uint64_t n = 0;

    make_box(g, &c, NULL);
    sw_runs_begin(&runs, &c.box, c.dims, c.n_dims);
    while (sw_runs_next(&runs, &run)) {
        if (run.length == 0 || run.begin == before.begin)
            return false;
        for (uint64_t i = 0; i < run.length; i++) {
            if (n >= c.box.elems || c.places[n++] != run.begin + i)
                return false;
        }
        before = run;
    }
    return n == c.box.elems && !sw_runs_next(&runs, &run);
}

static bool boxes_are_copied_as_their_elements_are(gen *g)
{
    static box_case from;
    static box_case to;
    static uint16_t source[MOST_ELEMS];
    static uint16_t target[MOST_ELEMS];
    static uint16_t expected[MOST_ELEMS];
    static uint16_t packed[MOST_ELEMS];
    sw_runs from_runs;
    sw_runs to_runs;

    make_box(g, &from, NULL);
    make_box(g, &to, &from);
    for (uint32_t i = 0; i < MOST_ELEMS; i++) {
        source[i] = (uint16_t)i;
        target[i] = expected[i] = UINT16_MAX;
    }
    for (uint64_t i = 0; i < from.box.elems; i++)
        expected[to.places[i]] = source[from.places[i]];
    sw_runs_begin(&from_runs, &from.box, from.dims, from.n_dims);
    sw_runs_begin(&to_runs, &to.box, to.dims, to.n_dims);
    sw_box_copy(target, &to_runs, source, &from_runs, sizeof *source);
    if (memcmp(target, expected, sizeof target) != 0)
        return false;

    memset(target, 0xff, sizeof target);
    sw_runs_begin(&from_runs, &from.box, from.dims, from.n_dims);
    sw_runs_begin(&to_runs, &to.box, to.dims, to.n_dims);
    return sw_box_pack(packed, source, &from_runs, sizeof *source) == from.box.elems * sizeof *source &&
           sw_box_unpack(target, packed, &to_runs, sizeof *source) == to.box.elems * sizeof *source &&
           memcmp(target, expected, sizeof target) == 0;
}

static void the_runs_of_a_box_are_its_elements_in_order(void **state)
{
    (void)state;
    assert_true(gen_holds(runs_visit_the_box_in_order, N_CASES));
}

static void a_box_is_copied_directly_or_through_a_buffer(void **state)
{
    (void)state;
    assert_true(gen_holds(boxes_are_copied_as_their_elements_are, N_CASES));
}

static void dims_that_nobody_cuts_are_one_run(void **state)
{
    (void)state;
    const uint64_t dims[] = {3, 4, 5};
    const sw_range half = {2, 4};
    const sw_range all[] = {
        {0, 3},
        {0, 4},
        {0, 5}
    };
    const sw_box middle = {
        {{3, 1, &all[0]}, {2, 1, &half}, {5, 1, &all[2]}},
        30
    };
    const sw_box whole = {
        {{3, 1, &all[0]}, {4, 1, &all[1]}, {5, 1, &all[2]}},
        60
    };
    sw_runs runs;
    sw_run run;
    uint32_t n = 0;

    sw_runs_begin(&runs, &middle, dims, 3);
    while (sw_runs_next(&runs, &run)) {
        assert_int_equal(run.begin, n++ * 20 + 10);
        assert_int_equal(run.length, 10);
    }
    assert_int_equal(n, 3);
    sw_runs_begin(&runs, &whole, dims, 3);
    assert_true(sw_runs_next(&runs, &run));
    assert_int_equal(run.length, 60);
    assert_false(sw_runs_next(&runs, &run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runs_of_a_box_are_its_elements_in_order),
        cmocka_unit_test(a_box_is_copied_directly_or_through_a_buffer),
        cmocka_unit_test(dims_that_nobody_cuts_are_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
