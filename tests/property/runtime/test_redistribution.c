/*
 * Any layout to any other, on simulated ranks. Whatever the layouts are, the tensor stays the same tensor and
 * the gradient the same gradient; what tensors of the ranks stand for is said in tests/support/layout_case.h,
 * what a step does in tests/support/simulate.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "dtensor/redistribution.h"
#include "layout_case.h"
#include "simulate.h"

enum { N_CASES = 12000, N_DENSE_CASES = 3000, DENSE_ELEMS = 12, DENSE_MOST = 128 };

/* A transition on all ranks of a grid. */
typedef struct transition_case {
    layout_case from;
    layout_case to;
    layout_case from_gradient;
    layout_case to_gradient;
    uint32_t split;
    sw_redistribution ranks[CASE_MAX_RANKS];
    sw_arena *arena;
} transition_case;

static transition_case tested;
static uint64_t n_steps_of[SW_STEP_KIND_COUNT_];

static bool make_layout(const layout_case *c, sw_tensor_layout *out)
{
    return sw_tensor_layout_make(out, &c->grid, c->n_dims, c->dims, c->places, NULL) == SW_OK;
}

static bool make_case(gen *g, transition_case *t, uint64_t most_elems)
{
    uint64_t dims[SW_LAYOUT_MAX_DIMS];
    sw_tensor_layout from;
    sw_tensor_layout to;
    sw_grid grid;

    layout_case_grid(g, &grid, CASE_MAX_RANKS);
    uint32_t n_dims = layout_case_shape(g, dims, most_elems);
    layout_case_places(g, &t->from, &grid, n_dims, dims);
    layout_case_places(g, &t->to, &grid, n_dims, dims);
    t->split = gen_below(g, 8);
    layout_case_gradient(&t->from_gradient, &t->from, 0);
    layout_case_gradient(&t->to_gradient, &t->to, t->split);
    sw_arena_destroy(t->arena);
    t->arena = sw_arena_create(0);
    if (!make_layout(&t->from, &from) || !make_layout(&t->to, &to))
        return false;
    for (uint32_t rank = 0; rank < t->from.n_ranks; rank++) {
        sw_grid_coord at = {{0}};
        for (uint32_t a = 0; a < grid.n_axes; a++)
            at.at[a] = layout_case_coord(&t->from, rank, a);
        if (sw_redistribution_make(&t->ranks[rank], &from, &to, t->split, at, t->arena, NULL) != SW_OK)
            return false;
    }
    return true;
}

static bool run_way(const transition_case *t, bool is_forward, double **tensors)
{
    const sw_step_list *lists[CASE_MAX_RANKS];

    for (uint32_t rank = 0; rank < t->from.n_ranks; rank++)
        lists[rank] = is_forward ? &t->ranks[rank].forward : &t->ranks[rank].backward;
    return simulate_list(&t->from.grid, lists, tensors);
}

static void free_all(double **tensors)
{
    for (uint32_t rank = 0; rank < CASE_MAX_RANKS; rank++) {
        free(tensors[rank]);
        tensors[rank] = NULL;
    }
}

/* Every element is its own number, so that a permutation is seen; none is 0, as gaps are. */
static double *numbers(uint64_t n)
{
    double *values = calloc(n + 1, sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = (double)(i + 1);
    return values;
}

static double *random_values(gen *g, uint64_t n)
{
    double *values = calloc(n + 1, sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = (double)gen_below(g, 200) - 100;
    return values;
}

static bool has_local_shapes(const layout_case *c, const sw_step_list *list, const sw_tensor_layout *layout,
                             uint32_t rank)
{
    sw_grid_coord at = {{0}};
    uint64_t local[SW_LAYOUT_MAX_DIMS] = {0};

    for (uint32_t a = 0; a < c->grid.n_axes; a++)
        at.at[a] = layout_case_coord(c, rank, a);
    sw_tensor_layout_local(layout, at, local);
    size_t n_bytes = c->n_dims * sizeof local[0];
    return memcmp(local, c->local[rank], n_bytes) == 0 &&
           (list->n == 0 || memcmp(list->steps[list->n - 1].out, local, n_bytes) == 0);
}

/* No tensor on the way is larger, on its largest rank, than what is there before and after. */
static bool has_no_peak(const transition_case *t, bool is_forward)
{
    uint64_t ends = 0;
    uint64_t between = 0;

    for (uint32_t rank = 0; rank < t->from.n_ranks; rank++) {
        const sw_step_list *list = is_forward ? &t->ranks[rank].forward : &t->ranks[rank].backward;
        uint64_t before = layout_case_local_elems(&t->from, rank);
        uint64_t after = layout_case_local_elems(&t->to, rank);
        ends = before > ends ? before : ends;
        ends = after > ends ? after : ends;
        for (uint32_t i = 0; i + 1 < list->n; i++) {
            uint64_t elems = sw_step_out_elems(&list->steps[i]);
            between = elems > between ? elems : between;
        }
    }
    return between <= ends;
}

static bool forward_keeps_the_tensor(gen *g)
{
    double *tensors[CASE_MAX_RANKS] = {0};

    if (!make_case(g, &tested, CASE_MAX_ELEMS))
        return false;
    double *values = numbers(layout_case_elems(&tested.from));
    layout_case_spread(g, &tested.from, values, tensors);
    bool holds = run_way(&tested, true, tensors) && layout_case_stands_for(&tested.to, tensors, values) &&
                 has_no_peak(&tested, true);
    for (uint32_t rank = 0; rank < tested.from.n_ranks && holds; rank++)
        holds = has_local_shapes(&tested.to, &tested.ranks[rank].forward, &tested.ranks[rank].to, rank);
    for (uint32_t i = 0; i < tested.ranks[0].forward.n; i++)
        n_steps_of[tested.ranks[0].forward.steps[i].kind]++;
    free(values);
    free_all(tensors);
    return holds;
}

/* The gradient arrives whole, and the inner product with the tensor is the same on both sides. */
static bool backward_keeps_the_gradient(gen *g)
{
    double *before[CASE_MAX_RANKS] = {0};
    double *after[CASE_MAX_RANKS] = {0};
    double *gradients[CASE_MAX_RANKS] = {0};

    if (!make_case(g, &tested, CASE_MAX_ELEMS))
        return false;
    uint64_t n = layout_case_elems(&tested.from);
    double *values = random_values(g, n);
    double *gradient = random_values(g, n);
    double expected = 0;
    for (uint64_t i = 0; i < n; i++)
        expected += values[i] * gradient[i];
    layout_case_spread(g, &tested.from, values, before);
    for (uint32_t rank = 0; rank < tested.from.n_ranks;
         rank++) { /* the forward's own result, not one spread anew */
        uint64_t n_local = layout_case_local_elems(&tested.from, rank);
        after[rank] = calloc(n_local + 1, sizeof **after);
        memcpy(after[rank], before[rank], n_local * sizeof **after);
    }
    layout_case_spread(g, &tested.to_gradient, gradient, gradients);
    bool holds = run_way(&tested, true, after) &&
                 layout_case_inner(&tested.to, after, &tested.to_gradient, gradients) == expected &&
                 run_way(&tested, false, gradients) &&
                 layout_case_stands_for(&tested.from_gradient, gradients, gradient) &&
                 layout_case_inner(&tested.from, before, &tested.from_gradient, gradients) == expected &&
                 has_no_peak(&tested, false);
    for (uint32_t rank = 0; rank < tested.from.n_ranks && holds; rank++)
        holds = has_local_shapes(&tested.from, &tested.ranks[rank].backward,
                                 &tested.ranks[rank].from_gradient, rank);
    free(values);
    free(gradient);
    free_all(before);
    free_all(after);
    free_all(gradients);
    return holds;
}

/* ---- owners ---- */

/* Is an element in the rows that a rank owns? */
static bool is_owned(const layout_case *c, const sw_tensor_layout *layout, uint32_t rank, uint64_t flat,
                     sw_arena *arena)
{
    sw_share owned = {.chosen = UINT32_MAX};

    for (uint32_t a = 0; a < c->grid.n_axes; a++)
        owned.holder.at[a] = layout_case_coord(c, rank, a);
    bool is_inside = sw_tensor_layout_shares(layout, &owned);
    for (uint32_t d = c->n_dims; d-- > 0; flat /= c->dims[d]) {
        sw_rows rows;
        bool is_row = false;
        if (sw_tensor_layout_rows(&rows, layout, d, &owned, arena, NULL) != SW_OK)
            return false;
        for (uint32_t i = 0; i < rows.n; i++)
            is_row = is_row ||
                     (flat % c->dims[d] >= rows.ranges[i].begin && flat % c->dims[d] < rows.ranges[i].end);
        is_inside = is_inside && is_row;
    }
    return is_inside;
}

/* Of the ranks that hold an element one owns it: one that holds it. */
static bool each_element_has_one_owner(gen *g)
{
    if (!make_case(g, &tested, DENSE_ELEMS))
        return false;
    const layout_case *c = &tested.from;
    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        uint32_t n_owners = 0;
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            bool is_mine = is_owned(c, &tested.ranks[0].from, rank, flat, tested.arena);
            if (is_mine && layout_case_at(c, rank, flat) == CASE_NOT_HELD)
                return false;
            n_owners += is_mine;
        }
        if (n_owners != 1)
            return false;
    }
    return true;
}

/* ---- linear maps ---- */

/* A map from the tensors of all ranks, one after the other, to those after: column by column. */
typedef struct dense {
    uint64_t n_in;
    uint64_t n_out;
    double at[DENSE_MOST][DENSE_MOST]; /* [out][in] */
} dense;

static void fill_column(const transition_case *t, bool is_forward, const layout_case *in,
                        const layout_case *out, uint64_t column, dense *map)
{
    double *tensors[CASE_MAX_RANKS] = {0};
    uint64_t at = 0;

    for (uint32_t rank = 0; rank < in->n_ranks; rank++) {
        uint64_t n = layout_case_local_elems(in, rank);
        tensors[rank] = calloc(n + 1, sizeof **tensors);
        if (column >= at && column < at + n)
            tensors[rank][column - at] = 1;
        at += n;
    }
    assert_true(run_way(t, is_forward, tensors));
    at = 0;
    for (uint32_t rank = 0; rank < out->n_ranks; rank++) {
        for (uint64_t i = 0; i < layout_case_local_elems(out, rank); i++)
            map->at[at++][column] = tensors[rank][i];
    }
    free_all(tensors);
}

static uint64_t all_elems(const layout_case *c)
{
    uint64_t n = 0;
    for (uint32_t rank = 0; rank < c->n_ranks; rank++)
        n += layout_case_local_elems(c, rank);
    return n;
}

static bool fill_map(const transition_case *t, bool is_forward, dense *map)
{
    const layout_case *in = is_forward ? &t->from : &t->to_gradient;
    const layout_case *out = is_forward ? &t->to : &t->from_gradient;

    map->n_in = all_elems(in);
    map->n_out = all_elems(out);
    if (map->n_in > DENSE_MOST || map->n_out > DENSE_MOST)
        return false;
    for (uint64_t column = 0; column < map->n_in; column++)
        fill_column(t, is_forward, in, out, column, map);
    return true;
}

/* Is the sum over all ranks of tensor times gradient the inner product: are there no copies on both sides? */
static bool has_no_copies(const layout_case *c, const layout_case *gradient)
{
    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            if (layout_case_at(c, rank, flat) != CASE_NOT_HELD &&
                !layout_case_counts(c, gradient, rank, flat))
                return false;
        }
    }
    return true;
}

static uint64_t offset_of(const layout_case *c, uint32_t rank)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at += layout_case_local_elems(c, i);
    return at;
}

/* For each number of the gradient's tensors the first one that is a copy of it. */
static void find_copies(const layout_case *c, uint64_t *first)
{
    for (uint64_t flat = 0; flat < layout_case_elems(c); flat++) {
        for (uint32_t rank = 0; rank < c->n_ranks; rank++) {
            uint32_t lower = 0;
            int64_t at = layout_case_at(c, rank, flat);
            if (at == CASE_NOT_HELD)
                continue;
            while (layout_case_at(c, lower, flat) == CASE_NOT_HELD ||
                   !layout_case_are_copies(c, lower, rank, flat))
                lower++;
            first[offset_of(c, rank) + (uint64_t)at] =
                offset_of(c, lower) + (uint64_t)layout_case_at(c, lower, flat);
        }
    }
}

/* What a gradient that has 1 in all copies of one number becomes: by the backward, by the forward transposed.
 */
static bool are_transposes(const dense *forward, const dense *backward, const uint64_t *first)
{
    for (uint64_t i = 0; i < forward->n_in; i++) {
        double difference[DENSE_MOST] = {0};
        for (uint64_t k = 0; k < forward->n_out; k++)
            difference[first[k]] += backward->at[i][k] - forward->at[k][i];
        for (uint64_t k = 0; k < forward->n_out; k++) {
            if (difference[k] != 0)
                return false;
        }
    }
    return true;
}

static uint64_t n_transposes_of[SW_STEP_KIND_COUNT_]; /* transitions of one step, by kind */

/* Where the ranks' numbers have no copies on both sides the backward is the transpose of the forward. */
static bool backward_is_the_transpose(gen *g)
{
    static dense forward;
    static dense backward;
    uint64_t first[DENSE_MOST];

    if (!make_case(g, &tested, DENSE_ELEMS))
        return false;
    if (!has_no_copies(&tested.from, &tested.from_gradient) ||
        !has_no_copies(&tested.to, &tested.to_gradient) || !fill_map(&tested, true, &forward) ||
        !fill_map(&tested, false, &backward))
        return true;
    if (forward.n_in != backward.n_out || forward.n_out != backward.n_in)
        return false;
    if (tested.ranks[0].forward.n == 1)
        n_transposes_of[tested.ranks[0].forward.steps[0].kind]++;
    find_copies(&tested.to_gradient, first);
    return are_transposes(&forward, &backward, first);
}

/* ---- tests ---- */

static void assert_seen_often(const uint64_t *n_of, int kind, uint64_t least)
{
    bool is_full_run = getenv("SW_SEED") == NULL && getenv("SW_CASES") == NULL;
    if (is_full_run && n_of[kind] < least)
        fail_msg("%d cases with a step %s", (int)n_of[kind], sw_step_kind_name((sw_step_kind)kind));
}

static void a_tensor_is_the_same_after_any_transition(void **state)
{
    (void)state;
    assert_true(gen_holds(forward_keeps_the_tensor, N_CASES));
    for (int kind = 0; kind < SW_STEP_KIND_COUNT_; kind++)
        assert_seen_often(n_steps_of, kind, 300);
}

static void a_gradient_is_the_same_before_any_transition(void **state)
{
    (void)state;
    assert_true(gen_holds(backward_keeps_the_gradient, N_CASES));
}

static void without_copies_the_backward_is_the_transpose(void **state)
{
    (void)state;
    assert_true(gen_holds(backward_is_the_transpose, N_DENSE_CASES));
    for (int kind = 0; kind < SW_STEP_KIND_COUNT_;
         kind++) { /* of a slice and a keep there are copies before */
        if (kind != SW_STEP_SLICE && kind != SW_STEP_KEEP)
            assert_seen_often(n_transposes_of, kind, 20);
    }
}

static void an_element_has_one_owner(void **state)
{
    (void)state;
    assert_true(gen_holds(each_element_has_one_owner, N_DENSE_CASES));
}

static int forget(void **state)
{
    (void)state;
    sw_arena_destroy(tested.arena);
    tested.arena = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_tensor_is_the_same_after_any_transition, forget),
        cmocka_unit_test_teardown(a_gradient_is_the_same_before_any_transition, forget),
        cmocka_unit_test_teardown(an_element_has_one_owner, forget),
        cmocka_unit_test_teardown(without_copies_the_backward_is_the_transpose, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
